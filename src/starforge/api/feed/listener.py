"""The mailbox of one subscription: bounded, and filled without waiting."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from starforge.domain.errors import SlowConsumer
from starforge.domain.queries import FeedRow

QUEUE_MAX = 10_000


class Listener:
    """Rows that `wants` says yes to.

    Coalescing, it keeps the newest row of each subject with the aspects of those it replaces; otherwise it keeps all,
    and beyond QUEUE_MAX ends with SlowConsumer.
    """

    def __init__(self, wants: Callable[[FeedRow], bool], *, coalesce: bool) -> None:
        self._wants = wants
        self._coalesce = coalesce
        self._rows: OrderedDict[str | int, FeedRow] = OrderedDict()
        self._news = asyncio.Event()
        self._overflowed_at: int | None = None

    def offer(self, row: FeedRow) -> None:
        if not self._wants(row) or self._overflowed_at is not None:
            return
        key: str | int = row.subject if self._coalesce else row.position
        older = self._rows.pop(key, None)
        if older is not None:
            row = replace(row, aspects=row.aspects | older.aspects)
        if len(self._rows) >= QUEUE_MAX:
            self._overflowed_at = row.position
        else:
            self._rows[key] = row
        self._news.set()

    async def next(self, timeout_s: float) -> FeedRow | None:
        """The oldest row that was not taken; None if none came in time. SlowConsumer after what fitted was taken."""
        if not self._rows and self._overflowed_at is None:
            self._news.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._news.wait()
            except TimeoutError:
                return None
        if self._rows:
            return self._rows.popitem(last=False)[1]
        raise SlowConsumer("You read more slowly than this stream may wait; resume from the cursor.")
