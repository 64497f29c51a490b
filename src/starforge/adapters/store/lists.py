"""Lists of jobs and entries, filtered and in pages."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, func, literal, select, type_coerce
from sqlalchemy.types import NULLTYPE

from starforge.adapters.store.filters import event_conditions, job_conditions
from starforge.adapters.store.job_cache import STAMP, JobCache, stamp_of
from starforge.adapters.store.pages import Ask, Order, read_page, read_pages
from starforge.adapters.store.tables import JOB, TIMELINE
from starforge.adapters.store.timeline import entry_of
from starforge.domain.job import Job
from starforge.domain.queries import EventFilter, EventsAsked, JobFilter, JobOrder, JobOrderField, Page, Window
from starforge.domain.timeline import Entry

_COLUMNS = {
    JobOrderField.CREATED_AT: JOB.c.created_at,
    JobOrderField.UPDATED_AT: JOB.c.updated_at,
    JobOrderField.STARTED_AT: JOB.c.started_at,
    JobOrderField.ENDED_AT: JOB.c.ended_at,
    JobOrderField.NAME: JOB.c.name,
    JobOrderField.PRIORITY: JOB.c.priority,
    JobOrderField.GPUS: JOB.c.gpus,
}
_STAMPED = frozenset(column.name for column in STAMP)


def job_page(connection: Connection, cache: JobCache, which: JobFilter, order: JobOrder, window: Window) -> Page[Job]:
    """In at most three statements, of which one reads the jobs that this process has not read before."""
    by, rows = _ordered(order)
    found = read_page(connection, rows.where(*job_conditions(which)), by, window, stamp_of)
    jobs = cache.jobs(connection, [stamp for _, stamp in found.rows])
    kept = [(key, jobs[stamp.id]) for key, stamp in found.rows if stamp.id in jobs]
    return Page(kept, found.has_next, found.has_previous)


@cache
def _ordered(order: JobOrder) -> tuple[Order, Select[Any]]:
    """The order as the database knows it, and the stamps of every job with what such an order goes by."""
    by = Order(JOB.c.id, _COLUMNS[order.field], order.descending)
    return by, select(*STAMP, *(_bare(column) for column in by.columns if column.name not in _STAMPED))


def _bare(column: Column[Any]) -> ColumnElement[Any]:
    """A column as the driver gives it: a time is not made to be taken apart again for a key."""
    return type_coerce(column, NULLTYPE).label(column.name)


def job_count(connection: Connection, which: JobFilter, *, at_most: int) -> int:
    some = select(literal(1)).select_from(JOB).where(*job_conditions(which)).limit(at_most).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one()


def entry_page(connection: Connection, which: EventFilter, window: Window) -> Page[Entry]:
    return entry_pages(connection, [(which, window)])[which, window]


def entry_pages(connection: Connection, asked: Sequence[EventsAsked]) -> Mapping[EventsAsked, Page[Entry]]:
    asks = [Ask(select(TIMELINE).where(*event_conditions(which)), window) for which, window in asked]
    pages = read_pages(connection, asks, Order(TIMELINE.c.position), entry_of)
    return dict(zip(asked, pages, strict=True))


def projects(connection: Connection, *, limit: int) -> list[str]:
    """One look into the index for each project, however many jobs it has."""
    first = select(func.min(JOB.c.project).label("name")).cte("projects", recursive=True)
    following = select(func.min(JOB.c.project)).where(JOB.c.project > first.c.name).scalar_subquery()
    every = first.union_all(select(following).where(first.c.name.is_not(None)))
    named = select(every.c.name).where(every.c.name.is_not(None)).limit(limit)
    return list(connection.execute(named).scalars())
