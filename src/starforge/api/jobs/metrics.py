"""Metric curves, thinned to what a chart can show, with no spike lost."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from math import fsum

from starforge.api.context import Context
from starforge.api.enums import MetricBucket
from starforge.api.jobs.progress import MetricSeries, MetricValue
from starforge.api.paging import bad_input
from starforge.api.scalars import BigInt
from starforge.domain.names import RunKey
from starforge.domain.progress import MetricPoint

NAMES_MAX = 20


def _mean(values: list[float]) -> float:
    """Their mean, also when their sum would be too large for a float."""
    return fsum(value / len(values) for value in values)


_REDUCE: dict[MetricBucket, Callable[[list[float]], float]] = {
    MetricBucket.MEAN: _mean,
    MetricBucket.MINIMUM: min,
    MetricBucket.MAXIMUM: max,
}


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
    if names is not None and len(names) > NAMES_MAX:
        raise bad_input(f"`names` has {len(names)} entries; {NAMES_MAX} are the most.")
    chosen = sorted(await context.metric_names(run))[:NAMES_MAX] if names is None else names
    store = context.ports.store
    points = await context.services.thread(store.metric_points, run, chosen, steps[0], steps[1])
    origin = await _origin(context, run, points)
    by_name: dict[str, list[MetricPoint]] = {name: [] for name in chosen}

    def thin() -> list[MetricSeries]:
        for point in points:
            by_name[point.name].append(point)
        return [_series(name, run, rows, origin, max_points, bucket) for name, rows in by_name.items() if rows]

    return await context.services.thread(thin)


async def _origin(context: Context, run: RunKey, points: Sequence[MetricPoint]) -> datetime:
    attempts = await context.loaders.attempts.load(run.job)
    started = next((row.started_at for row in attempts if row.number == run.attempt), None)
    times = [point.at for point in points[:1]] + ([started] if started else [])
    return min(times) if times else context.began_at


def buckets(points: Sequence[MetricPoint], most: int) -> list[Sequence[MetricPoint]]:
    """Neighbours together in at most `most` buckets, the newest point in one of its own."""
    if len(points) <= most:
        return [points[index : index + 1] for index in range(len(points))]
    size = (len(points) - 1) / (most - 1)
    edges = [round(index * size) for index in range(most)]
    return [points[start:end] for start, end in pairwise(edges)] + [points[-1:]]


def _series(
    name: str, run: RunKey, points: Sequence[MetricPoint], origin: datetime, most: int, how: MetricBucket
) -> MetricSeries:
    groups = buckets(points, most)
    finite = [[point.value for point in group if point.value is not None] for group in groups]
    counts = accumulate(map(len, groups))
    return MetricSeries(
        name=name,
        attempt=run.attempt,
        reported=len(points),
        downsampled=len(groups) < len(points),
        origin=origin,
        steps=[
            BigInt(group[-1].step if group[-1].step is not None else count)
            for group, count in zip(groups, counts, strict=True)
        ],
        seconds=[(group[-1].at - origin).total_seconds() for group in groups],
        values=[_one(values, how) for values in finite],
        minimums=[min(values, default=None) for values in finite],
        maximums=[max(values, default=None) for values in finite],
        non_finites=[len(group) - len(values) for group, values in zip(groups, finite, strict=True)],
        latest=MetricValue.of(points[-1]),
    )


def _one(values: list[float], how: MetricBucket) -> float | None:
    if not values:
        return None
    return values[-1] if how is MetricBucket.LAST else _REDUCE[how](values)
