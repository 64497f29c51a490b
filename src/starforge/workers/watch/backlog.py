"""What was read of a fleet's watch and not written yet, bounded by its size: the database may be away for hours."""

import threading
from collections import deque

from starforge.domain.capacity.nodes import NodesSeen
from starforge.domain.observation import LogSeen, Seen

MOST_BYTES = 64 * 1024 * 1024
_OTHERS, _LINE, _NODE, _CLAIM = 4096, 128, 2048, 1024
"""Bytes that any other message takes, a line beside its text, a node and a claim; about, as nobody counts them."""


class Backlog:
    """First in, first out. It takes a message as long as there is room, however large the message is."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._waiting: deque[Seen] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def put(self, seen: Seen, *, timeout_s: float) -> bool:
        """False if there was no room for so long."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._bytes < self._most, timeout_s):
                return False
            self._waiting.append(seen)
            self._bytes += size_of(seen)
            self._changed.notify_all()
            return True

    def take(self, *, timeout_s: float) -> Seen | None:
        """The oldest; None if none came for so long."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting, timeout_s):
                return None
            seen = self._waiting.popleft()
            self._bytes -= size_of(seen)
            self._changed.notify_all()
            return seen


def size_of(seen: Seen) -> int:
    """Bytes that a message takes, about."""
    if isinstance(seen, LogSeen):
        return sum(len(line.data) + _LINE for line in seen.lines)
    if isinstance(seen, NodesSeen):
        return _OTHERS + sum(_NODE + _CLAIM * len(node.claims) for node in seen.nodes)
    return _OTHERS
