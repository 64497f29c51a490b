"""What the tests of the bus share: rows, and a subscriber that is listened to until something is heard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from starforge.adapters.bus import Gap, GapWhy, News, Subscriber
from starforge.domain.changes import Aspect
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow

LIMIT_S = 60  # only a test that fails waits for so long
Heard = News | Gap


def row(position: int, subject: str = "job-1") -> FeedRow:
    at = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
    aspects = frozenset({Aspect.STATE, Aspect.PROGRESS})
    return FeedRow(position, at, FeedKind.JOB, subject, JobId("job-1"), "default", 7, aspects)


class Ear:
    """Everything a subscriber has said, in order."""

    def __init__(self, stream: AsyncIterator[Heard]) -> None:
        self._stream = stream
        self.heard: list[Heard] = []

    async def until(self, wanted: Callable[[Heard], bool]) -> Heard:
        """Listen until something is heard that is `wanted`."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                self.heard.append(await anext(self._stream))
                if wanted(self.heard[-1]):
                    return self.heard[-1]

    async def gap(self, why: GapWhy) -> None:
        await self.until(lambda heard: heard == Gap(why))

    async def rows(self, *rows: FeedRow) -> None:
        await self.until(lambda heard: heard == News(rows))

    @property
    def gaps(self) -> list[GapWhy]:
        return [heard.why for heard in self.heard if isinstance(heard, Gap)]


@asynccontextmanager
async def listening(url: str, *, backlog: int = 256, silence_s: float = 1.0) -> AsyncIterator[Ear]:
    """An ear that has heard the first confirmation."""
    async with Subscriber(url, backlog=backlog, silence_s=silence_s) as subscriber:
        ear = Ear(aiter(subscriber))
        await ear.gap(GapWhy.SUBSCRIBED)
        ear.heard.clear()
        yield ear
