"""Waiting longer each time, never in step with others."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Backoff:
    """Seconds to wait before the next try: doubled from `first_s` up to `longest_s`, of which at least half."""

    first_s: float = 0.5
    longest_s: float = 30.0
    jitter: Callable[[], float] = random.random
    _failures: int = field(default=0, init=False)

    def next_s(self, at_least: float | None = None) -> float:
        whole = min(self.first_s * 2.0 ** min(self._failures, 20), self.longest_s)
        self._failures += 1
        return max(whole * (0.5 + self.jitter() / 2), at_least or 0.0)

    def reset(self) -> None:
        self._failures = 0
