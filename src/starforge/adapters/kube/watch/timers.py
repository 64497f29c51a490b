"""Things that are due at a time, by name."""


class Timers:
    """Times are seconds of one monotonic clock. Setting what is set already changes nothing: it never slips."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}

    def set(self, name: str, at: float) -> None:
        self._due.setdefault(name, at)

    def wait_s(self, now: float, at_most: float) -> float:
        """How long until the next one is due, at most `at_most`."""
        soonest = min(self._due.values(), default=now + at_most)
        return min(max(soonest - now, 0.0), at_most)

    def due(self, now: float) -> list[str]:
        """Those that are due, earliest first; they are not set any more."""
        names = sorted((name for name, at in self._due.items() if at <= now), key=self._due.__getitem__)
        for name in names:
            del self._due[name]
        return names
