"""Bytes of a container's log as lines with their times; what is longer than a line may be comes in pieces."""

from starforge.adapters.kube.watch.logs.cursor import Piece, Stamp, split_stamp
from starforge.domain.logs import LINE_MAX_BYTES, cut_at

# The time before a line, and what is needed to see that there is none.
_STAMP_BYTES = 40


class Pieces:
    """Holds at most a piece, however long a line is. Lines without a time are a kubelet's own, and left out."""

    def __init__(self, longest: int = LINE_MAX_BYTES) -> None:
        self._longest = longest
        self._held = bytearray()
        self._stamp: Stamp | None = None
        self._starts = 0
        self._skips = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """Whole lines, and what is long enough for a piece."""
        *ends, rest = chunk.split(b"\n")
        found: list[Piece] = []
        for end in ends:
            found += self._hold(end)
            found += self._finish()
        return found + self._hold(rest)

    def end(self) -> list[Piece]:
        """What came after the last line end counts as a line."""
        return self._finish() if self._held or self._starts else []

    def _hold(self, data: bytes) -> list[Piece]:
        self._held += data
        found: list[Piece] = []
        start = 0
        if len(self._held) > self._longest + _STAMP_BYTES:
            self._read_stamp()
        while self._stamp and len(self._held) - start > self._longest:
            size = cut_at(self._held[start : start + self._longest], self._longest)
            found.append(Piece(self._stamp, bytes(self._held[start : start + size]), self._starts, ends=False))
            start += size
            self._starts += size
        del self._held[: len(self._held) if self._skips else start]
        return found

    def _read_stamp(self) -> None:
        if self._stamp is None and not self._skips:
            stamped = split_stamp(bytes(self._held[:_STAMP_BYTES]))
            self._skips = stamped is None
            if stamped:
                self._stamp, rest = stamped
                del self._held[: min(len(self._held), _STAMP_BYTES) - len(rest)]

    def _finish(self) -> list[Piece]:
        self._read_stamp()
        stamp, data, starts = self._stamp, bytes(self._held), self._starts
        self._held.clear()
        self._stamp, self._starts, self._skips = None, 0, False
        return [Piece(stamp, data, starts)] if stamp else []
