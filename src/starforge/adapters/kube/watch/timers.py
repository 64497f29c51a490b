"""Things that are due at a time, by name."""

import heapq


class Timers:
    """Times are seconds of one monotonic clock. Setting what is set already changes nothing: it never slips."""

    def __init__(self) -> None:
        self._set: set[str] = set()
        self._due: list[tuple[float, str]] = []

    def set(self, name: str, at: float) -> None:
        if name not in self._set:
            self._set.add(name)
            heapq.heappush(self._due, (at, name))

    def wait_s(self, now: float, at_most: float) -> float:
        """How long until the next one is due, at most `at_most`."""
        soonest = self._due[0][0] if self._due else now + at_most
        return min(max(soonest - now, 0.0), at_most)

    def due(self, now: float) -> list[str]:
        """Those that are due, earliest first; they are not set any more."""
        names: list[str] = []
        while self._due and self._due[0][0] <= now:
            names.append(heapq.heappop(self._due)[1])
        self._set.difference_update(names)
        return names
