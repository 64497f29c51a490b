"""Lines between the thread that reads a log and the observer that passes them on, in batches."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from starforge.adapters.kube.watch.logs.cursor import Cursor
from starforge.domain.observation import RawLine

BATCH_LINES = 1_000
BATCH_BYTES = 256 * 1024
_ROOM_LINES = 4 * BATCH_LINES
_ROOM_BYTES = 4 * BATCH_BYTES
_AGAIN_S = 0.2


@dataclass(frozen=True)
class Batch:
    """Lines and the cursor after them; `last` says that the log has ended with them, `more` that others wait."""

    lines: tuple[RawLine, ...]
    cursor: Cursor | None
    last: bool
    more: bool


class Buffer:
    """Bounded: a log that runs ahead of the observer waits. `tell` is called when there is something to fetch."""

    def __init__(self, cursor: Cursor | None, halted: threading.Event, tell: Callable[[], None]) -> None:
        self._cursor, self._halted, self._tell = cursor, halted, tell
        self._lines: deque[tuple[RawLine, Cursor]] = deque()
        self._bytes = 0
        self._closed = False
        self._told = False
        self._room = threading.Condition()

    def add(self, lines: list[tuple[RawLine, Cursor]]) -> None:
        """Waits until there is room, or all is halted."""
        if not lines:
            return
        with self._room:
            while self._full() and not self._halted.is_set():
                self._room.wait(_AGAIN_S)
            self._lines.extend(lines)
            self._bytes += sum(len(line.data) for line, _ in lines)
            tell, self._told = not self._told, True
        if tell:
            self._tell()

    def close(self) -> None:
        """The log has ended."""
        with self._room:
            self._closed = True
            tell, self._told = not self._told, True
        if tell:
            self._tell()

    def fetch(self) -> Batch:
        """The next lines, in order, as many as a batch may have."""
        with self._room:
            lines: list[RawLine] = []
            size = 0
            while self._lines and len(lines) < BATCH_LINES and (not lines or size < BATCH_BYTES):
                line, self._cursor = self._lines.popleft()
                lines.append(line)
                size += len(line.data)
            self._bytes -= size
            more = bool(self._lines)
            self._told = more
            self._room.notify_all()
            return Batch(tuple(lines), self._cursor, last=self._closed and not more, more=more)

    def _full(self) -> bool:
        return len(self._lines) >= _ROOM_LINES or self._bytes >= _ROOM_BYTES
