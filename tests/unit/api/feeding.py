"""A feed as tests need it: rows, a table in memory, and news that come as they are told."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starforge.domain.changes import Aspect
from starforge.domain.errors import StoreUnavailable
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LIMIT_S = 60
"""Only a test that fails waits for so long."""
News = Sequence[FeedRow] | None


def row(position: int, job: str = "job-1", *aspects: Aspect, kind: FeedKind = FeedKind.JOB) -> FeedRow:
    """A row whose revision is its position."""
    return FeedRow(position, AT, kind, job, JobId(job), "default", position, frozenset(aspects))


@dataclass
class Table:
    """Rows 1 to `head`, of which those up to `floor` are gone; it fails as often as `outages` says."""

    head: int = 0
    floor: int = 0
    outages: list[Exception] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)

    async def bounds(self) -> tuple[int, int]:
        return self.floor, self.head

    async def rows(self, after: int, limit: int) -> Sequence[FeedRow]:
        self.reads.append(after)
        if self.outages:
            raise self.outages.pop()
        return [row(position) for position in range(max(after, self.floor) + 1, min(self.head, after + limit) + 1)]


class Ears:
    """`hear` of a hub: gives what it was told, one after the other, and then waits for ever."""

    def __init__(self, *news: News | Exception) -> None:
        self._news = list(news)
        self.all_taken = asyncio.Event()
        self.begun = 0

    async def hear(self) -> AsyncIterator[News]:
        self.begun += 1
        while self._news:
            heard = self._news.pop(0)
            if isinstance(heard, Exception):
                raise heard
            yield heard
        self.all_taken.set()
        await asyncio.Event().wait()


def outage() -> StoreUnavailable:
    return StoreUnavailable("The database can't be reached.")


def positions(rows: Iterable[FeedRow]) -> list[int]:
    return [one.position for one in rows]


class Blockable:
    """The part of a subscriber that tests hold up."""

    def __init__(self) -> None:
        self.blocked = False
        self._has_room = asyncio.Event()

    async def room(self) -> None:
        if self.blocked:
            await self._has_room.wait()

    def block(self) -> None:
        self.blocked = True
        self._has_room.clear()

    def unblock(self) -> None:
        self.blocked = False
        self._has_room.set()
