"""What every feed subscription does: what lies behind a cursor, then what comes, and bookmarks when it is quiet."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from starforge.api.context import Context
from starforge.api.cursors import feed_cursor, read_feed_cursor
from starforge.api.feed.hub import Hub
from starforge.api.feed.listener import Listener
from starforge.domain.errors import CursorExpired, CursorInvalid, SlowConsumer
from starforge.domain.queries import FeedRow

BOOKMARK_S = 15.0


@dataclass(frozen=True)
class Step:
    """A row to tell of; `row` is None for a bookmark. `position` is where to resume after it."""

    position: int
    row: FeedRow | None


async def resume_position(hub: Hub, after: str) -> int:
    """The position of a cursor; CursorExpired if rows after it are gone, CursorInvalid if it is none of ours."""
    position = read_feed_cursor(after)
    floor, head = await hub.bounds()
    if position < floor:
        raise CursorExpired("This cursor is too old: query again and subscribe after the new feed cursor.")
    if position > head:
        raise CursorInvalid("This cursor lies ahead of everything; query again and use the new feed cursor.")
    return position


async def steps(
    context: Context, wants: Callable[[FeedRow], bool], after: int | None, *, coalesce: bool
) -> AsyncGenerator[Step, None]:
    """Steps from position `after` (from now, if None) on; the first one that has no row ends what was there before."""
    hub = context.services.hub
    listener = Listener(wants, coalesce=coalesce)
    leave = hub.listen(listener)
    try:
        joined = hub.position
        last = joined if after is None else min(after, joined)
        if after is not None:
            async for row in hub.between(after, joined):
                if wants(row):
                    last = row.position
                    yield Step(last, row)
        yield Step(joined, None)
        async for step in _live(hub, listener, max(joined, last)):
            yield step
    finally:
        leave()


async def _live(hub: Hub, listener: Listener, last: int) -> AsyncGenerator[Step, None]:
    while True:
        before = hub.position
        try:
            row = await listener.next(BOOKMARK_S)
        except SlowConsumer as slow:
            raise SlowConsumer(slow.message, cursor=feed_cursor(last)) from slow
        if row is None:
            last = max(last, before)
            yield Step(last, None)
        elif row.position > last:
            last = row.position
            yield Step(last, row)
