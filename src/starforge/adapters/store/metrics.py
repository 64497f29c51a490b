"""Metrics: every value that was reported, by series."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, insert, select, tuple_

from starforge.adapters.store.jobs import run_pairs
from starforge.adapters.store.statements import insert_new
from starforge.adapters.store.tables import METRIC_POINT, METRIC_SERIES
from starforge.domain.names import RunKey
from starforge.domain.progress import MetricPoint, NonFinite

_Series = tuple[str, int, str]


def write_metrics(connection: Connection, points: Sequence[tuple[RunKey, MetricPoint]]) -> None:
    if not points:
        return
    names = list(dict.fromkeys((run.job, run.attempt, point.name) for run, point in points))
    ids = _ids(connection, names)
    if new := [name for name in names if name not in ids]:
        values = [{"job_id": job, "attempt": attempt, "name": name} for job, attempt, name in new]
        connection.execute(insert_new(connection, METRIC_SERIES), values)
        ids = _ids(connection, names)
    rows = [_values(ids[run.job, run.attempt, point.name], point) for run, point in points]
    connection.execute(insert(METRIC_POINT), rows)


def _ids(connection: Connection, names: Sequence[_Series]) -> Mapping[_Series, int]:
    columns = METRIC_SERIES.c
    key = tuple_(columns.job_id, columns.attempt, columns.name)
    rows = connection.execute(select(METRIC_SERIES).where(key.in_(names)))
    return {(row.job_id, row.attempt, row.name): row.id for row in rows}


def _values(series: int, point: MetricPoint) -> dict[str, object]:
    non_finite = point.non_finite.value if point.non_finite else None
    return {"series": series, "step": point.step, "value": point.value, "non_finite": non_finite, "at": point.at}


def metric_points(
    connection: Connection,
    run: RunKey,
    names: Sequence[str] | None,
    first_step: int | None,
    last_step: int | None,
) -> Sequence[MetricPoint]:
    statement = select(METRIC_SERIES.c.name, METRIC_POINT).join(
        METRIC_POINT, METRIC_POINT.c.series == METRIC_SERIES.c.id
    )
    statement = statement.where(_is_of(run)).order_by(METRIC_POINT.c.id)
    if names is not None:
        statement = statement.where(METRIC_SERIES.c.name.in_(names))
    if first_step is not None:
        statement = statement.where(METRIC_POINT.c.step >= first_step)
    if last_step is not None:
        statement = statement.where(METRIC_POINT.c.step <= last_step)
    return [point_of(row) for row in connection.execute(statement)]


def point_of(row: Row[Any]) -> MetricPoint:
    non_finite = NonFinite(row.non_finite) if row.non_finite else None
    return MetricPoint(row.name, row.value, row.at, row.step, non_finite)


def metric_names(connection: Connection, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[str]]:
    columns = METRIC_SERIES.c
    statement = select(columns.job_id, columns.attempt, columns.name).where(are_of(runs))
    found: dict[RunKey, list[str]] = defaultdict(list)
    for job, attempt, name in connection.execute(statement.order_by(columns.id)):
        found[RunKey(job, attempt)].append(name)
    return dict(found)


def are_of(runs: Sequence[RunKey]) -> ColumnElement[bool]:
    """Series of any of the runs."""
    return tuple_(METRIC_SERIES.c.job_id, METRIC_SERIES.c.attempt).in_(run_pairs(runs))


def _is_of(run: RunKey) -> ColumnElement[bool]:
    return (METRIC_SERIES.c.job_id == run.job) & (METRIC_SERIES.c.attempt == run.attempt)
