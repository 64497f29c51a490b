"""Finds the place in a log that is read again from a little before where it was left."""

from dataclasses import dataclass, field, replace

from starforge.adapters.kube.watch.logs.cursor import Cursor, Piece

# A line this much later than the one looked for says that the latter was rotated away: stdout and stderr of one
# container may be out of order, but not by this much.
_LATE_S = 2
_LATE_BYTES = 4 * 1024 * 1024


@dataclass
class Resume:
    """Drops all up to and with what was kept last. `feed` gives what is new, `end` what is held back at the end."""

    last: Cursor | None
    _same: int = field(default=0, init=False)
    _held: list[Piece] = field(default_factory=list, init=False)
    _bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._found = self.last is None or self.last.count == 0

    def feed(self, piece: Piece) -> list[Piece]:
        if self._found or self.last is None:
            return [piece]
        if piece.stamp == self.last.stamp:
            self._same += piece.starts == 0
            return self._rest(piece, self.last) if self._same == self.last.count else []
        return self._hold(piece, self.last)

    def end(self) -> list[Piece]:
        """The log ended and the last line kept is not in it any more: what is later was not had."""
        held, self._held = self._held, []
        if self._found or self.last is None:
            return held
        self._found = True
        # Of a line that was left within nothing more comes.
        ends = [] if self.last.part is None else [Piece(self.last.stamp, b"", self.last.part)]
        return ends + held

    def _rest(self, piece: Piece, last: Cursor) -> list[Piece]:
        """What is new of the line that was read last."""
        if last.part is None:
            self._is_found(piece.ends)
            return []
        known = max(0, last.part - piece.starts)
        if known >= len(piece.data) and not piece.ends:
            return []
        self._is_found(found=True)
        return [replace(piece, data=piece.data[known:], starts=piece.starts + min(known, len(piece.data)))]

    def _is_found(self, found: bool) -> None:
        if found:
            self._found = True
            self._held.clear()

    def _hold(self, piece: Piece, last: Cursor) -> list[Piece]:
        if piece.stamp > last.stamp:
            self._held.append(piece)
            self._bytes += len(piece.data)
        late = piece.stamp.seconds - last.stamp.seconds > _LATE_S or self._bytes > _LATE_BYTES
        return self.end() if late else []
