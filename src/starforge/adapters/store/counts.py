"""How many jobs there are per value of one of their properties."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Select, func, select

from starforge.adapters.store.filters import job_conditions
from starforge.adapters.store.tables import JOB, JOB_LABEL, JOB_SERIES
from starforge.adapters.store.time_limit import at_most as limited
from starforge.domain.queries import JobCount, JobCountKey, JobFilter

_COLUMNS: Mapping[JobCountKey, Column[Any]] = {
    JobCountKey.STATE: JOB.c.state,
    JobCountKey.OUTCOME: JOB.c.outcome,
    JobCountKey.REASON: JOB.c.reason,
    JobCountKey.PROJECT: JOB.c.project,
    JobCountKey.FLEET: JOB.c.fleet,
    JobCountKey.CREATED_BY: JOB.c.created_by,
}


def job_counts(
    connection: Connection, which: JobFilter, by: JobCountKey, *, label: str | None, at_most: int, timeout_s: float
) -> Sequence[JobCount]:
    jobs = func.count().label("jobs")
    statement, value = _grouped(by, label)
    statement = statement.add_columns(jobs).where(*job_conditions(which)).group_by(value)
    statement = statement.order_by(jobs.desc(), value.is_(None), value).limit(at_most)
    with limited(connection, timeout_s, about=f"Counting jobs by {by}"):
        return [JobCount(*row) for row in connection.execute(statement)]


def _grouped(by: JobCountKey, label: str | None) -> tuple[Select[Any], Column[Any]]:
    """Every job with the value to group by; once for each series that it has, and with None if it lacks the label."""
    if by is JobCountKey.SERIES:
        value = JOB_SERIES.c.series
        return select(value).select_from(JOB).join(JOB_SERIES, JOB_SERIES.c.job_id == JOB.c.id), value
    if by is JobCountKey.LABEL:
        having = (JOB_LABEL.c.job_id == JOB.c.id) & (JOB_LABEL.c.key == label)
        return select(JOB_LABEL.c.value).select_from(JOB).outerjoin(JOB_LABEL, having), JOB_LABEL.c.value
    value = _COLUMNS[by]
    return select(value), value
