"""Metric curves, thinned by the store to what a chart can show, with no spike lost."""

from collections.abc import Sequence
from datetime import datetime

from starforge.api.context import Context
from starforge.api.enums import MetricBucket
from starforge.api.jobs.progress import MetricSeries, MetricValue
from starforge.api.paging import bad_input
from starforge.api.scalars import BigInt
from starforge.domain.names import RunKey
from starforge.domain.progress import Curve, CurveBucket
from starforge.domain.queries import METRICS_MAX, CurveRange


async def metric_series(
    context: Context,
    run: RunKey,
    names: list[str] | None,
    steps: tuple[int | None, int | None],
    max_points: int,
    bucket: MetricBucket,
) -> list[MetricSeries]:
    """A curve for each of the metrics, in the order asked for."""
    if not 2 <= max_points <= 2000:
        raise bad_input(f"`maxPoints` must be 2 to 2,000, not {max_points}.")
    if names is not None and len(names) > METRICS_MAX:
        raise bad_input(f"`names` has {len(names)} entries; {METRICS_MAX} are the most.")
    wanted = None if names is None else tuple(dict.fromkeys(names))
    curves = await context.loaders.curves.load((CurveRange(wanted, *steps, max_points), run))
    started = await _started(context, run)
    by_name = {curve.name: curve for curve in curves}
    chosen = [by_name[name] for name in wanted if name in by_name] if wanted is not None else curves
    times = [curve.buckets[0].first_at for curve in curves] + ([started] if started else [])
    return [series(curve, run, min(times), max_points, bucket) for curve in chosen]


async def _started(context: Context, run: RunKey) -> datetime | None:
    attempts = await context.loaders.attempts.load(run.job)
    return next((row.started_at for row in attempts if row.number == run.attempt), None)


def series(curve: Curve, run: RunKey, origin: datetime, most: int, how: MetricBucket) -> MetricSeries:
    """The curve in columns. `most` is how many buckets there could have been at most."""
    buckets = curve.buckets
    reported = buckets[-1].number
    return MetricSeries(
        name=curve.name,
        attempt=run.attempt,
        reported=reported,
        downsampled=reported > most,
        origin=origin,
        steps=_steps(buckets),
        seconds=[(one.newest.at - origin).total_seconds() for one in buckets],
        values=[_value(one, how) for one in buckets],
        minimums=[one.minimum for one in buckets],
        maximums=[one.maximum for one in buckets],
        non_finites=[one.points - one.finite for one in buckets],
        latest=MetricValue.of(buckets[-1].newest),
    )


def _steps(buckets: Sequence[CurveBucket]) -> list[BigInt]:
    return [BigInt(one.newest.step if one.newest.step is not None else one.number) for one in buckets]


def _value(bucket: CurveBucket, how: MetricBucket) -> float | None:
    return {
        MetricBucket.MEAN: bucket.mean,
        MetricBucket.MINIMUM: bucket.minimum,
        MetricBucket.MAXIMUM: bucket.maximum,
        MetricBucket.LAST: bucket.last,
    }[how]
