"""How many points a caller may spend on documents: a bucket that fills up steadily, in the memory of this process."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starforge.domain.errors import BeyondBudget, Throttled
from starforge.domain.rights import Caller

BUCKETS_MAX = 10_000
POINTS, POINTS_PER_S = 200_000, 5_000
"""What a caller has unless the settings say otherwise."""
ROUNDING = 1e-6
"""Points that floats may lose, so that who waits exactly as long as they were told is let in."""

Clock = Callable[[], float]
"""Seconds that only rise."""


@dataclass(frozen=True)
class Charged:
    """What an operation was charged, and what is left in the bucket, in points."""

    requested: int
    available: int
    restore_per_second: int

    def told(self) -> dict[str, int]:
        """As `extensions.cost`. `actual` is what was asked for, as an answer that is served to many, or from memory, is
        bytes in which nobody counts objects."""
        return {
            "requested": self.requested,
            "actual": self.requested,
            "available": self.available,
            "restorePerSecond": self.restore_per_second,
        }


@dataclass
class _Bucket:
    points: float
    at: float


class Budget:
    """A bucket of `maximum` points for each caller, which gets `restore_per_second` of them back. A caller who has not
    been heard of for longest is forgotten first, and then has a full bucket."""

    def __init__(self, *, maximum: int, restore_per_second: int, clock: Clock, most: int = BUCKETS_MAX) -> None:
        self.maximum = maximum
        self.restore_per_second = restore_per_second
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def charge(self, caller: Caller, points: int) -> Charged:
        """Takes the points. Raises Throttled if the bucket has too few now, BeyondBudget if it never has so many; either
        takes nothing."""
        if points > self.maximum:
            raise BeyondBudget(
                f"The document costs {points} points, and you have at most {self.maximum}. Ask for less at a time."
            )
        bucket = self._bucket(caller)
        if points > bucket.points + ROUNDING:
            raise self._throttled(points, bucket.points)
        bucket.points = max(bucket.points - points, 0)
        return Charged(points, int(bucket.points), self.restore_per_second)

    def available(self, caller: Caller) -> int:
        """Points in the bucket now."""
        return int(self._bucket(caller).points)

    def _bucket(self, caller: Caller) -> _Bucket:
        key, now = key_of(caller), self._clock()
        bucket = self._buckets.setdefault(key, _Bucket(self.maximum, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        back = (now - bucket.at) * self.restore_per_second
        bucket.points, bucket.at = min(bucket.points + back, self.maximum), now
        return bucket

    def _throttled(self, points: int, available: float) -> Throttled:
        seconds = (points - available) / self.restore_per_second
        return Throttled(
            f"The document costs {points} points and you have {int(available)} left. Try again in {seconds:.1f} seconds.",
            retry_after_s=seconds,
        )


def key_of(caller: Caller) -> str:
    """Whose bucket it is: that of the token, or of whoever came in another way."""
    return f"token:{caller.token}" if caller.token else f"actor:{caller.actor.kind}:{caller.actor.name}"
