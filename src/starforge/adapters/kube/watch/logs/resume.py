"""Finds the place in a log that is read again from a little before where it was left."""

from dataclasses import dataclass, field

from starforge.adapters.kube.watch.logs.cursor import Cursor, Stamp

# A line this much later than the one looked for says that the latter was rotated away: stdout and stderr of one
# container may be out of order, but not by this much.
_LATE_S = 2

Line = tuple[Stamp, bytes]


@dataclass
class Resume:
    """Drops lines up to and with the last one kept. `feed` gives the new ones, `end` what is held back at the end."""

    last: Cursor | None
    _same: int = field(default=0, init=False)
    _held: list[Line] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._found = self.last is None

    def feed(self, stamp: Stamp, data: bytes) -> list[Line]:
        if self._found or self.last is None:
            return [(stamp, data)]
        if stamp == self.last.stamp:
            self._same += 1
            if self._same == self.last.count:
                self._found = True
                self._held.clear()
            return []
        return self._hold(stamp, data, self.last)

    def end(self) -> list[Line]:
        """The log ended and the last line kept is not in it any more: what is later was not had."""
        held, self._held = self._held, []
        return held

    def _hold(self, stamp: Stamp, data: bytes, last: Cursor) -> list[Line]:
        if stamp > last.stamp:
            self._held.append((stamp, data))
        if stamp.seconds - last.stamp.seconds <= _LATE_S:
            return []
        self._found = True
        return self.end()
