"""Lines between the loop that reads logs and the observer that passes them on, in batches."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from starforge.adapters.kube.watch.logs.cursor import Cursor
from starforge.adapters.kube.watch.logs.room import Room
from starforge.domain.observation import RawLine

BATCH_LINES = 1_000
BATCH_BYTES = 256 * 1024
_FULL_LINES = 4 * BATCH_LINES
_FULL_BYTES = 4 * BATCH_BYTES


@dataclass(frozen=True)
class Batch:
    """Lines and the cursor after them; `last` says that the log has ended with them, `more` that others wait.

    `missing` says, with the last, why lines after them could not be had; `problem` why the log can't be read right now,
    of which `turned` says that it has changed.
    """

    lines: tuple[RawLine, ...]
    cursor: Cursor | None
    last: bool
    more: bool
    missing: str | None = None
    problem: str | None = None
    turned: bool = False


class Buffer:
    """Bounded, as its writer waits `for_more`. `tell` is called when there is something to fetch."""

    def __init__(self, cursor: Cursor | None, room: Room, tell: Callable[[], None]) -> None:
        self._cursor, self._room, self._tell = cursor, room, tell
        self._lines: deque[tuple[RawLine, Cursor]] = deque()
        self._bytes = 0
        self._closed = False
        self._missing: str | None = None
        self._problem: str | None = None
        self._turned = False
        self._told = False
        self._lock = threading.Lock()
        self._fetched = asyncio.Event()

    async def for_more(self) -> None:
        """Waits until there is room for what is read next, here and in all."""
        while len(self._lines) >= _FULL_LINES or self._bytes >= _FULL_BYTES:
            self._fetched.clear()
            await self._fetched.wait()
        await self._room.for_more()

    @property
    def has_more(self) -> bool:
        """Whether the last fetch left something behind."""
        return bool(self._lines) or self._closed

    def add(self, lines: list[tuple[RawLine, Cursor]]) -> None:
        if not lines:
            return
        size = sum(len(line.data) for line, _ in lines)
        self._room.take(size)
        with self._lock:
            self._lines.extend(lines)
            self._bytes += size
            tell, self._told = not self._told, True
        if tell:
            self._tell()

    def close(self, missing: str | None = None) -> None:
        """The log has ended, and why not all of it was had."""
        with self._lock:
            self._closed, self._missing = True, missing
            tell, self._told = not self._told, True
        if tell:
            self._tell()

    def interrupt(self, problem: str | None) -> None:
        """The log can't be read right now, and why, or it can be read again."""
        with self._lock:
            self._problem, self._turned = problem, True
            tell, self._told = not self._told, True
        if tell:
            self._tell()

    def fetch(self) -> Batch:
        """The next lines, in order, as many as a batch may have."""
        with self._lock:
            lines: list[RawLine] = []
            size = 0
            while self._lines and len(lines) < BATCH_LINES and (not lines or size < BATCH_BYTES):
                line, self._cursor = self._lines.popleft()
                lines.append(line)
                size += len(line.data)
            self._bytes -= size
            more = bool(self._lines)
            self._told = more
            last = self._closed and not more
            missing, turned, self._turned = self._missing if last else None, self._turned, False
            batch = Batch(tuple(lines), self._cursor, last, more, missing, self._problem, turned)
        self._room.give_back(size)
        if size:
            self._room.loop.call_soon_threadsafe(self._fetched.set)
        return batch
