"""The mailbox of one subscription: bounded, and filled without waiting."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from starforge.domain.errors import FeedError, SlowConsumer
from starforge.domain.queries import FeedRow

QUEUE_MAX = 10_000
TAKE_MAX = 100


class Listener:
    """Rows that `wants` says yes to.

    Coalescing, it keeps the newest row of each subject with the aspects of those it replaces; otherwise it keeps all.
    Beyond QUEUE_MAX it ends with SlowConsumer.
    """

    def __init__(self, wants: Callable[[FeedRow], bool], *, coalesce: bool) -> None:
        self._wants = wants
        self._coalesce = coalesce
        self._rows: OrderedDict[str | int, FeedRow] = OrderedDict()
        self._news = asyncio.Event()
        self._end: FeedError | None = None

    def offer(self, row: FeedRow) -> None:
        """Keep a row if it is wanted; rows come in the order of their positions."""
        if self._end is not None or not self._wants(row):
            return
        key: str | int = row.subject if self._coalesce else row.position
        older = self._rows.pop(key, None)
        if older is not None:
            row = replace(row, aspects=row.aspects | older.aspects)
        if len(self._rows) >= QUEUE_MAX:
            self.end(SlowConsumer("You read more slowly than this stream may wait; resume from the cursor."))
            return
        self._rows[key] = row
        self._news.set()

    @property
    def waiting(self) -> int:
        return len(self._rows)

    def end(self, error: FeedError) -> None:
        """Take no more rows; `error` is raised once those that are here were taken."""
        self._end = self._end or error
        self._news.set()

    async def take(self, timeout_s: float) -> Sequence[FeedRow]:
        """The oldest rows that were not taken, at most TAKE_MAX, in order; none if none came in time."""
        if not self._rows and self._end is None:
            self._news.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
            except TimeoutError:
                return ()
        if not self._rows and self._end is not None:
            raise self._end
        return [self._rows.popitem(last=False)[1] for _ in range(min(len(self._rows), TAKE_MAX))]
