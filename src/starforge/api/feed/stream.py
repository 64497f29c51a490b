"""What every feed subscription does: a snapshot or what lies behind a cursor, then what comes, with bookmarks between."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

from starforge.api.cursors import feed_cursor, read_feed_cursor
from starforge.api.feed.hub import Hub, expired
from starforge.api.feed.listener import Listener
from starforge.domain.errors import CursorInvalid, SlowConsumer
from starforge.domain.queries import FeedRow

BOOKMARK_S = 15.0
Told = TypeVar("Told")
Told_co = TypeVar("Told_co", covariant=True)


class Teller(Protocol[Told_co]):
    """What one subscription tells of the feed. Coalescing, rows that newer ones replace may be left out."""

    coalesce: bool

    def wants(self, row: FeedRow) -> bool: ...

    async def snapshot(self, position: int) -> Sequence[Told_co]:
        """What is there before anything is told; it holds all that happened up to `position`, and maybe more."""
        ...

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Told_co]:
        """What to send for rows that are wanted, in order; may be less, or nothing."""
        ...

    def bookmark(self, position: int) -> Told_co:
        """That everything up to `position` was told."""
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


async def follow(hub: Hub, teller: Teller[Told], after: int | None) -> AsyncGenerator[Told, None]:
    """What there is to tell after position `after`, or a snapshot and what comes after it."""
    position = hub.position if after is None else after
    if after is None:
        for change in await teller.snapshot(position):
            yield change
        yield teller.bookmark(position)
    while position < (head := hub.position):
        async with aclosing(hub.between(position, head)) as read:
            async for rows in read:
                wanted = [row for row in rows if teller.wants(row)]
                for change in await teller.tell(wanted) if wanted else ():
                    yield change
        position = head
    # Nothing is awaited between the look at the hub's position and this: no row falls in between.
    listener = Listener(teller.wants, coalesce=teller.coalesce)
    leave = hub.listen(listener)
    try:
        if after is not None:
            yield teller.bookmark(position)
        async with aclosing(_live(hub, listener, teller, position)) as changes:
            async for change in changes:
                yield change
    finally:
        leave()


async def _live(hub: Hub, listener: Listener, teller: Teller[Told], last: int) -> AsyncGenerator[Told, None]:
    """Changes after position `last`, which this gateway may not have reached itself, and bookmarks when it is quiet."""
    clock = asyncio.get_running_loop().time
    quiet_until = clock() + BOOKMARK_S
    while True:
        heard = hub.position
        try:
            rows = await listener.take(max(0.0, quiet_until - clock()))
        except SlowConsumer as slow:
            raise SlowConsumer(slow.message, cursor=feed_cursor(last)) from slow
        fresh = [row for row in rows if row.position > last]
        changes = await teller.tell(fresh) if fresh else ()
        last = max(last, rows[-1].position if rows else heard)
        if not changes and clock() >= quiet_until:
            changes = [teller.bookmark(last)]
        for change in changes:
            yield change
        if changes:
            quiet_until = clock() + BOOKMARK_S
