"""One hub for each gateway: pub/sub makes it fast, the table makes it true.

Every row of the feed reaches every listener once and in order of its position. A row that comes too early, or a mark
that something may have been missed, makes the hub read what is missing from the table.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from itertools import chain
from typing import Protocol

from starforge.api.feed.listener import Listener
from starforge.domain.errors import CursorExpired, StoreUnavailable
from starforge.domain.names import JobId
from starforge.domain.ports import Publish
from starforge.domain.queries import FeedRow

READ_LIMIT = 1000
RESTART_S = 1.0
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
        self._by_job: dict[JobId, set[Listener]] = {}
        self._head_now: asyncio.Task[tuple[int, int]] | None = None
        self._head_next: asyncio.Task[tuple[int, int]] | None = None
        self._own_lock = threading.Lock()
        self.position = 0
        self.gaps_repaired = 0
        self._own = 0
        self._heard_at = time.monotonic()

    async def start(self) -> None:
        """Begin at the newest row there is."""
        _, self.position = await self._table.bounds()

    async def run(self) -> None:
        """Deliver until cancelled. Whatever fails is logged and tried again: without this, nobody hears of anything."""
        while True:
            try:
                async for rows in self._hear():
                    await self._heard(rows)
            except Exception:  # noqa: BLE001  see above
                _log.exception("Hearing about the feed failed; it begins again.")
            await asyncio.sleep(RESTART_S)

    async def _heard(self, rows: Sequence[FeedRow] | None) -> None:
        try:
            await (self._catch_up() if rows is None else self._take(rows))
            self._heard_at = time.monotonic()
        except StoreUnavailable as outage:
            _log.warning("The feed waits for the database: %s", outage)
        except Exception:  # noqa: BLE001  see `run`
            _log.exception("Reading the feed failed; it is read again at the next news.")

    async def _take(self, rows: Sequence[FeedRow]) -> None:
        for row in rows:
            if row.position > self.position + 1:
                await self._catch_up()
            if row.position == self.position + 1:
                self._deliver(row)

    async def _catch_up(self) -> None:
        before = self.position
        while True:
            rows = await self._table.rows(self.position, READ_LIMIT)
            for row in rows:
                self._deliver_next(row)
            if len(rows) < READ_LIMIT:
                break
        self.gaps_repaired += self.position > before

    def _deliver_next(self, row: FeedRow) -> None:
        if row.position <= self.position:
            return
        if row.position > self.position + 1:  # rows were pruned before they were read
            for listener in self._everybody():
                listener.end(expired())
        self._deliver(row)

    def _deliver(self, row: FeedRow) -> None:
        self.position = row.position
        for listener in self._listeners:
            listener.offer(row)
        for listener in self._by_job.get(row.job, ()) if row.job else ():
            listener.offer(row)

    def offer(self, row: FeedRow) -> None:
        """Give listeners a row of this gateway's own, about what no row of the table tells, at the position it has."""
        for listener in list(self._listeners):
            listener.offer(row)

    def noting(self, publish: Publish) -> Publish:
        """`publish` for writers of this process: whoever wrote something reads it, though the hub has not heard yet."""

        def note(rows: Sequence[FeedRow]) -> None:
            if rows:
                with self._own_lock:
                    self._own = max(self._own, rows[-1].position)
            publish(rows)

        return note

    def settled(self) -> int | None:
        """The position, or None while something was written here that was not heard of yet."""
        return self.position if self.position >= self._own else None

    def listen(self, listener: Listener, jobs: Collection[JobId] | None = None) -> Callable[[], None]:
        """Give a listener every row from now on, or those about some jobs; the answer ends that."""
        if jobs is None:
            self._listeners.add(listener)
        for job in jobs or ():
            self._by_job.setdefault(job, set()).add(listener)
        return lambda: self._leave(listener, jobs)

    def _leave(self, listener: Listener, jobs: Collection[JobId] | None) -> None:
        self._listeners.discard(listener)
        for job in jobs or ():
            among = self._by_job.get(job, set())
            among.discard(listener)
            if not among:
                self._by_job.pop(job, None)

    @property
    def silent_s(self) -> float:
        """Since rows were last heard of, or the table was last read."""
        return time.monotonic() - self._heard_at

    @property
    def waiting(self) -> int:
        """Rows that were delivered to listeners and not taken yet."""
        return sum(listener.waiting for listener in self._everybody())

    def _everybody(self) -> set[Listener]:
        return {*self._listeners, *chain.from_iterable(self._by_job.values())}

    @property
    def listeners(self) -> int:
        return len(self._listeners) + sum(map(len, self._by_job.values()))

    async def head(self) -> tuple[int, int]:
        """As `bounds`, read after this call began, and once for all who wait for it."""
        if self._head_next is None:
            self._head_next = asyncio.create_task(self._read_head(self._head_now))
        return await asyncio.shield(self._head_next)

    async def _read_head(self, before: asyncio.Task[tuple[int, int]] | None) -> tuple[int, int]:
        if before is not None:
            await asyncio.wait([before])
        self._head_now, self._head_next = self._head_next, None  # who asks from now on, asks the next one
        return await self._table.bounds()

    async def between(self, after: int, until: int) -> AsyncGenerator[Sequence[FeedRow], None]:
        """Rows of the table after `after` up to and with `until`, some at a time; CursorExpired if they are gone."""
        while after < until:
            rows = await self._table.rows(after, min(READ_LIMIT, until - after))
            if not rows or rows[0].position != after + 1:
                raise expired()
            yield rows
            after = rows[-1].position

    async def bounds(self) -> tuple[int, int]:
        """(the last position that can't be read any more, the newest one), as the table has them."""
        return await self._table.bounds()


def expired() -> CursorExpired:
    """Rows that would have to be told are gone."""
    return CursorExpired("This cursor is too old: query again and subscribe after the new feed cursor.")
