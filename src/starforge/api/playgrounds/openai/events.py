"""Event streams on their way: whole events are passed on at once, and half ones when their rest is there."""

import re

HELD_MAX = 64 * 1024
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"[DONE]"
_ENDS = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n")
_TAIL = 4


class Events:
    """Takes pieces as they come. `whole` tells whether all that was given out ended with an event."""

    def __init__(self) -> None:
        self._held = bytearray()
        self.whole = True

    def feed(self, piece: bytes) -> bytes:
        """What can be passed on now: up to the end of the last event that is there."""
        if not self._held and piece.endswith(b"\n\n"):
            self.whole = True
            return piece
        searched = max(0, len(self._held) - _TAIL)
        self._held += piece
        end = max((found.end() for found in _ENDS.finditer(self._held, searched)), default=0)
        if end:
            self.whole = True
        elif len(self._held) > HELD_MAX:
            end, self.whole = len(self._held), False
        ready = bytes(self._held[:end])
        del self._held[:end]
        return ready

    def rest(self) -> bytes:
        """What is left of a stream that has ended."""
        rest = bytes(self._held)
        self._held.clear()
        return rest

    def broken(self, event: bytes) -> bytes:
        """The last event of a stream that broke off; half an event before it is left out, or ended if it was sent."""
        self._held.clear()
        return event if self.whole else b"\n\n" + event
