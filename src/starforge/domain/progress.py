"""What the user's code reports about itself."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import inf, isnan


class NonFinite(StrEnum):
    NAN = "NAN"
    POSITIVE_INFINITY = "POSITIVE_INFINITY"
    NEGATIVE_INFINITY = "NEGATIVE_INFINITY"


@dataclass(frozen=True)
class MetricPoint:
    """One value of a metric: `value` is None where it is not finite, and `non_finite` then says which it is."""

    name: str
    value: float | None
    at: datetime
    step: int | None = None
    non_finite: NonFinite | None = None


@dataclass(frozen=True)
class CurveBucket:
    """Neighbouring points of a curve as one: `points` of them, the last with number `number` from 1 within the curve.

    `mean`, `minimum`, `maximum` and `last` are of the finite values alone, None if there are none.
    """

    number: int
    points: int
    finite: int
    mean: float | None
    minimum: float | None
    maximum: float | None
    last: float | None
    first_at: datetime
    newest: MetricPoint


@dataclass(frozen=True)
class Curve:
    """The points of a metric in buckets of about one size, oldest first; the newest point has one of its own."""

    name: str
    buckets: tuple[CurveBucket, ...]


@dataclass(frozen=True)
class Progress:
    """The newest report: steps in whatever unit the code counts, and the newest value of each metric."""

    reported_at: datetime
    step: int | None = None
    total: int | None = None
    metrics: tuple[MetricPoint, ...] = ()
    first_step: int | None = None
    first_at: datetime | None = None

    @property
    def fraction(self) -> float | None:
        if self.step is None or not self.total:
            return None
        return min(max(self.step / self.total, 0.0), 1.0)

    @property
    def steps_per_second(self) -> float | None:
        if self.step is None or self.first_step is None or self.first_at is None:
            return None
        seconds = (self.reported_at - self.first_at).total_seconds()
        return (self.step - self.first_step) / seconds if seconds > 0 else None


def metric_point(name: str, value: float, at: datetime, step: int | None) -> MetricPoint:
    """A point from a number that may be NaN or infinite."""
    if isnan(value):
        return MetricPoint(name, None, at, step, NonFinite.NAN)
    if value in (inf, -inf):
        sign = NonFinite.POSITIVE_INFINITY if value > 0 else NonFinite.NEGATIVE_INFINITY
        return MetricPoint(name, None, at, step, sign)
    return MetricPoint(name, value, at, step)


def report(
    old: Progress | None, step: int | None, total: int | None, points: tuple[MetricPoint, ...], at: datetime
) -> Progress:
    """Progress after a report: what a report leaves out keeps its last value."""
    newest = {point.name: point for point in (old.metrics if old else ())} | {point.name: point for point in points}
    first = old if old and old.first_step is not None else None
    return Progress(
        reported_at=at,
        step=step if step is not None else (old.step if old else None),
        total=total if total is not None else (old.total if old else None),
        metrics=tuple(newest.values()),
        first_step=first.first_step if first else step,
        first_at=first.first_at if first else (at if step is not None else None),
    )
