"""What every feed subscription does: a snapshot or what lies behind a cursor, then what comes, with bookmarks between.

The two are told apart, as the transport asks (`api/transport/source.py`): the opening is each subscriber's own, and
what comes after it is told once for all who asked the same.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from starforge.api.cursors import feed_cursor, read_feed_cursor
from starforge.api.feed.hub import Hub, expired
from starforge.api.feed.listener import Listener
from starforge.api.transport.source import Joint, Source, Step
from starforge.domain.errors import CursorInvalid, SlowConsumer, StoreUnavailable
from starforge.domain.names import JobId
from starforge.domain.queries import FeedRow

BOOKMARK_S = 15.0
TELL_AGAIN_S = 1.0
Told = TypeVar("Told")
Told_co = TypeVar("Told_co", covariant=True)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Telling(Generic[Told_co]):
    """What is sent, and what it is about."""

    change: Told_co
    step: Step


class Teller(Protocol[Told_co]):
    """What one subscription tells of the feed. Coalescing, rows that newer ones replace may be left out.

    `jobs` are those that it is about, None for any.
    """

    coalesce: bool
    jobs: frozenset[JobId] | None

    def wants(self, row: FeedRow) -> bool: ...

    async def snapshot(self, position: int) -> Sequence[Telling[Told_co]]:
        """What is there before anything is told; it holds all that happened up to `position`, and maybe more."""
        ...

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[Told_co]]:
        """What to send for rows that are wanted, in order; may be less, or nothing."""
        ...

    def bookmark(self, position: int) -> Told_co:
        """That everything up to `position` was told."""
        ...

    def forget(self) -> None:
        """Read again what is told next: the last time it could not be read."""
        ...


async def resume_position(hub: Hub, after: str) -> int:
    """The position of a cursor; CursorExpired if rows after it are gone, CursorInvalid if it is none of ours."""
    position = read_feed_cursor(after)
    floor, head = await hub.bounds()
    if position < floor:
        raise expired()
    if position > head:
        raise CursorInvalid("This cursor lies ahead of everything; query again and use the new feed cursor.")
    return position


async def follow(hub: Hub, teller: Teller[Told], source: Source, after: int | None) -> AsyncGenerator[Told, None]:
    """The part of the stream that `source` asks for; `after` is where the arguments say that it begins."""
    source.cursor = feed_cursor
    begin = after if source.resume_at is None else source.resume_at
    tellings = _live(hub, teller, source) if source.live else _opening(hub, teller, source, begin)
    async with aclosing(tellings):
        async for telling in tellings:
            source.step = telling.step
            yield telling.change
            while source.take_again():
                await asyncio.sleep(TELL_AGAIN_S)
                teller.forget()
                yield telling.change


async def _opening(
    hub: Hub, teller: Teller[Told], source: Source, after: int | None
) -> AsyncGenerator[Telling[Told], None]:
    position = hub.position if after is None else after
    told: dict[str, int] = {}
    if after is None:
        for telling in await teller.snapshot(position):
            _note(told, telling.step)
            yield telling
        yield _bookmark(teller, position)
    while position < (head := hub.position):
        async with aclosing(hub.between(position, head)) as read:
            async for rows in read:
                wanted = [row for row in rows if teller.wants(row)]
                for telling in await teller.tell(wanted) if wanted else ():
                    _note(told, telling.step)
                    yield telling
        position = head
    if after is not None:
        yield _bookmark(teller, position)
    _, settled_at = await hub.head()
    source.joint = Joint(position, max(settled_at, position), told)


def _note(told: dict[str, int], step: Step) -> None:
    if step.subject is not None:
        told[step.subject] = step.revision


def _bookmark(teller: Teller[Told], position: int) -> Telling[Told]:
    return Telling(teller.bookmark(position), Step(position))


async def _live(hub: Hub, teller: Teller[Told], source: Source) -> AsyncGenerator[Telling[Told], None]:
    """Changes from now on, and bookmarks when it is quiet."""
    listener, last = Listener(teller.wants, coalesce=teller.coalesce), hub.position
    leave = hub.listen(listener, teller.jobs)
    source.listening.set()
    clock = asyncio.get_running_loop().time
    quiet_until = clock() + BOOKMARK_S
    try:
        while True:
            heard = hub.position
            try:
                rows = await listener.take(max(0.0, quiet_until - clock()))
            except SlowConsumer as slow:
                raise SlowConsumer(slow.message, cursor=feed_cursor(last)) from slow
            tellings = await _tell_surely(teller, rows)
            last = max(last, rows[-1].position if rows else heard)
            if not tellings and clock() >= quiet_until:
                tellings = [_bookmark(teller, last)]
            for telling in tellings:
                yield telling
            if tellings:
                quiet_until = clock() + BOOKMARK_S
    finally:
        leave()


async def _tell_surely(teller: Teller[Told], rows: Sequence[FeedRow]) -> Sequence[Telling[Told]]:
    """Rows were taken out of the listener: they are told when the database answers, however long that takes."""
    while rows:
        try:
            return await teller.tell(rows)
        except StoreUnavailable as outage:
            _log.warning("Telling of changes waits for the database: %s", outage)
            teller.forget()
            await asyncio.sleep(TELL_AGAIN_S)
    return ()
