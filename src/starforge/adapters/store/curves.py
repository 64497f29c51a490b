"""Metric curves, thinned by the database: however many points there are, only buckets of them leave it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    Connection,
    Row,
    Select,
    case,
    cast,
    func,
    null,
    select,
)

from starforge.adapters.store.metrics import are_of, point_of
from starforge.adapters.store.tables import METRIC_POINT, METRIC_SERIES
from starforge.domain.names import RunKey
from starforge.domain.progress import Curve, CurveBucket
from starforge.domain.queries import METRICS_MAX, CurveRange

HUGE, SCALE = 2.0**900, 2.0**40
"""Values beyond HUGE are summed SCALE times smaller, as their sum might be too large for a float."""


def metric_curves(
    connection: Connection, runs: Sequence[RunKey], which: CurveRange
) -> Mapping[RunKey, Sequence[Curve]]:
    series = _series(connection, runs, which.names)
    if not series:
        return {}
    buckets: dict[int, list[CurveBucket]] = defaultdict(list)
    for row in connection.execute(_bucketed(list(series), which)):
        buckets[row.series].append(_bucket(row))
    found: dict[RunKey, list[Curve]] = defaultdict(list)
    for one, (run, name) in sorted(series.items(), key=lambda item: item[1][1]):
        if one in buckets:
            found[run].append(Curve(name, tuple(buckets[one])))
    return dict(found)


def _series(
    connection: Connection, runs: Sequence[RunKey], names: Sequence[str] | None
) -> Mapping[int, tuple[RunKey, str]]:
    """Run and name by id; of each run the first METRICS_MAX by name if no names are given."""
    columns = METRIC_SERIES.c
    statement = select(METRIC_SERIES).where(are_of(runs)).order_by(columns.name)
    if names is not None:
        statement = statement.where(columns.name.in_(names))
    of_run: dict[RunKey, list[tuple[int, str]]] = defaultdict(list)
    for row in connection.execute(statement):
        of_run[RunKey(row.job_id, row.attempt)].append((row.id, row.name))
    most = METRICS_MAX if names is None else None
    return {one: (run, name) for run, rows in of_run.items() for one, name in rows[:most]}


def _bucketed(series: Sequence[int], which: CurveRange) -> Select[Any]:
    """A row for each bucket, with the newest of its points and the newest finite value."""
    groups, newest, finite = _groups(_numbered(series, which), which.most), METRIC_POINT.alias(), METRIC_POINT.alias()
    statement = select(groups, newest.c.step, newest.c.value, newest.c.non_finite, newest.c.at, METRIC_SERIES.c.name)
    statement = statement.add_columns(finite.c.value.label("last_value"))
    joined = groups.join(newest, newest.c.id == groups.c.newest_id)
    joined = joined.join(METRIC_SERIES, METRIC_SERIES.c.id == groups.c.series)
    joined = joined.outerjoin(finite, finite.c.id == groups.c.finite_id)
    return statement.select_from(joined).order_by(groups.c.series, groups.c.number)


def _numbered(series: Sequence[int], which: CurveRange) -> CTE:
    """Each point with its number from 0 and how many there are."""
    columns = METRIC_POINT.c
    position = func.row_number().over(partition_by=columns.series, order_by=columns.id) - 1
    total = func.count().over(partition_by=columns.series)
    statement = select(columns.id, columns.series, columns.value, columns.at, position.label("position"))
    statement = statement.add_columns(total.label("total")).where(columns.series.in_(series))
    if which.first_step is not None:
        statement = statement.where(columns.step >= which.first_step)
    if which.last_step is not None:
        statement = statement.where(columns.step <= which.last_step)
    return statement.cte("numbered")


def _groups(points: CTE, most: int) -> CTE:
    columns = points.c
    spread, others = (
        cast(columns.position, BigInteger) * (most - 1),
        func.nullif(columns.total - 1, 0, type_=BigInteger()),
    )
    # All but the newest point in `most - 1` buckets; it is the one for which the quotient is `most - 1`.
    bucket = case((columns.total <= most, columns.position), else_=spread // others)
    value, huge = columns.value, func.abs(columns.value) > HUGE
    return (
        select(
            columns.series,
            (func.max(columns.position) + 1).label("number"),
            func.count().label("points"),
            func.count(value).label("finite"),
            func.sum(case((huge, 0.0), else_=value)).label("total_small"),
            func.sum(case((huge, value / SCALE), else_=0.0)).label("total_huge"),
            func.min(value).label("minimum"),
            func.max(value).label("maximum"),
            func.min(columns.at).label("first_at"),
            func.max(columns.id).label("newest_id"),
            func.max(case((value.is_not(None), columns.id), else_=null())).label("finite_id"),
        )
        .group_by(columns.series, bucket)
        .cte("buckets")
    )


def _bucket(row: Row[Any]) -> CurveBucket:
    return CurveBucket(
        number=row.number,
        points=row.points,
        finite=row.finite,
        mean=_mean(row) if row.finite else None,
        minimum=row.minimum,
        maximum=row.maximum,
        last=row.last_value,
        first_at=row.first_at,
        newest=point_of(row),
    )


def _mean(row: Row[Any]) -> float:
    mean: float = row.total_small / row.finite + row.total_huge / row.finite * SCALE
    return float(min(max(mean, row.minimum), row.maximum))  # rounding may have carried it past
