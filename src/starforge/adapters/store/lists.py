"""Lists of jobs and entries, filtered and in pages."""

from sqlalchemy import Connection, func, literal, select

from starforge.adapters.store.filters import event_conditions, job_conditions
from starforge.adapters.store.job_rows import job_of, select_jobs
from starforge.adapters.store.pages import Order, read_page
from starforge.adapters.store.tables import JOB, TIMELINE
from starforge.adapters.store.timeline import entry_of
from starforge.domain.job import Job
from starforge.domain.queries import EventFilter, JobFilter, JobOrder, JobOrderField, Page, Window
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


def job_page(connection: Connection, which: JobFilter, order: JobOrder, window: Window) -> Page[Job]:
    by = Order(JOB.c.id, _COLUMNS[order.field], order.descending)
    return read_page(connection, select_jobs().where(*job_conditions(which)), by, window, job_of)


def job_count(connection: Connection, which: JobFilter, *, at_most: int) -> int:
    some = select(literal(1)).select_from(JOB).where(*job_conditions(which)).limit(at_most).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one()


def entry_page(connection: Connection, which: EventFilter, window: Window) -> Page[Entry]:
    entries = select(TIMELINE).where(*event_conditions(which))
    return read_page(connection, entries, Order(TIMELINE.c.position), window, entry_of)
