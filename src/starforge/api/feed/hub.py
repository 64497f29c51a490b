"""One hub for each gateway: pub/sub makes it fast, the table makes it true.

Every row of the feed reaches every listener once and in order of its position. A row that comes too early, or a mark
that something may have been missed, makes the hub read what is missing from the table.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from starforge.api.feed.listener import Listener
from starforge.domain.errors import StoreUnavailable
from starforge.domain.queries import FeedRow

READ_LIMIT = 1000
_log = logging.getLogger(__name__)


class FeedTable(Protocol):
    """The table of the feed, asked from a thread."""

    async def bounds(self) -> tuple[int, int]: ...

    async def rows(self, after: int, limit: int) -> Sequence[FeedRow]: ...


class Hub:
    """`hear` yields rows as they are published, and None when some may have been missed."""

    def __init__(self, table: FeedTable, hear: Callable[[], AsyncIterator[Sequence[FeedRow] | None]]) -> None:
        self._table = table
        self._hear = hear
        self._listeners: set[Listener] = set()
        self.position = 0
        self.gaps_repaired = 0

    async def start(self) -> None:
        """Begin at the newest row there is."""
        _, self.position = await self._table.bounds()

    async def run(self) -> None:
        """Deliver until cancelled."""
        async for rows in self._hear():
            try:
                await (self._catch_up() if rows is None else self._take(rows))
            except StoreUnavailable as outage:
                _log.warning("the feed waits for the database: %s", outage)

    async def _take(self, rows: Sequence[FeedRow]) -> None:
        for row in rows:
            if row.position > self.position + 1:
                self.gaps_repaired += 1
                await self._catch_up()
            if row.position == self.position + 1:
                self._deliver(row)

    async def _catch_up(self) -> None:
        while True:
            rows = await self._table.rows(self.position, READ_LIMIT)
            for row in rows:
                if row.position > self.position:
                    self._deliver(row)
            if len(rows) < READ_LIMIT:
                return

    def _deliver(self, row: FeedRow) -> None:
        self.position = row.position
        for listener in self._listeners:
            listener.offer(row)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Give a listener every row from now on; the answer ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    async def between(self, after: int, until: int) -> AsyncIterator[FeedRow]:
        """Rows of the table after `after` up to and with `until`."""
        while after < until:
            rows = await self._table.rows(after, READ_LIMIT)
            for row in rows:
                if row.position > until:
                    return
                yield row
            if not rows:
                return
            after = rows[-1].position

    async def bounds(self) -> tuple[int, int]:
        """(the last position that can't be read any more, the newest one), as the table has them."""
        return await self._table.bounds()
