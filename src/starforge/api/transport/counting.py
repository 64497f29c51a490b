"""Counts of what a gateway did, and of how long it took."""

from bisect import bisect_left
from dataclasses import dataclass, field

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Spread:
    """Durations in seconds, by how long they were."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Each bound, and how many were at most that, as Prometheus has it."""
        names = [*map(str, BOUNDS_S), "+Inf"]
        return [(name, float(sum(self._counts[: index + 1]))) for index, name in enumerate(names)]


@dataclass
class Counts:
    """What all groups of a gateway did: results made and sent, readers that fell behind, subscribers that resumed."""

    executed: int = 0
    sent: int = 0
    fell_behind: int = 0
    resumed: int = 0
    lag: Spread = field(default_factory=Spread)
