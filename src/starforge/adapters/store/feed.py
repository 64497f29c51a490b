"""The feed: rows at contiguous positions in commit order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select, update

from starforge.adapters.store.owners import Owner
from starforge.adapters.store.tables import FEED, FEED_HEAD
from starforge.domain.changes import Aspect, JobWrite, LogWrite, NodesWrite
from starforge.domain.health import HealthWrite
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow
from starforge.domain.timeline import Entry

ADVISORY_LOCK = 0x5F02
PRUNE_AT_ONCE = 5000


def reserve(connection: Connection, count: int) -> int:
    """Take `count` positions and return the first. It holds all others back until the commit, so do it last."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
    statement = update(FEED_HEAD).values(head=FEED_HEAD.c.head + count).returning(FEED_HEAD.c.head)
    head: int = connection.execute(statement).scalar_one()
    return head - count + 1


def job_row(write: JobWrite, *, position: int, at: datetime) -> FeedRow:
    job = replace(write.job, revision=write.job.revision + 1)
    return FeedRow(
        position, at, FeedKind.JOB, job.id, job.id, job.spec.project, job.revision, write.aspects, lambda: job
    )


def entry_row(entry: Entry, *, position: int, owners: Mapping[JobId, Owner], at: datetime) -> FeedRow:
    job = entry.run.job if entry.run else None
    return FeedRow(position, at, FeedKind.EVENT, entry.id, job, owners[job].project if job else None)


def log_row(write: LogWrite, *, position: int, owners: Mapping[JobId, Owner], at: datetime) -> FeedRow:
    run = write.source.run
    subject = f"{run} {write.source.key}"
    return FeedRow(position, at, FeedKind.LOG, subject, run.job, owners[run.job].project)


def health_row(write: HealthWrite, *, position: int, at: datetime) -> FeedRow:
    report = write.report
    return FeedRow(position, at, FeedKind.HEALTH, report.subject, None, None, report.revision + 1)


def nodes_row(write: NodesWrite, *, position: int, at: datetime) -> FeedRow:
    return FeedRow(position, at, FeedKind.CAPACITY, write.fleet, None, None)


def write_rows(connection: Connection, rows: Sequence[FeedRow]) -> None:
    values = [
        {
            "position": row.position,
            "at": row.at,
            "kind": row.kind.value,
            "subject": row.subject,
            "job": row.job,
            "project": row.project,
            "revision": row.revision,
            "aspects": " ".join(sorted(row.aspects)),
        }
        for row in rows
    ]
    connection.execute(insert(FEED), values)


def read(connection: Connection, *, after: int, limit: int) -> Sequence[FeedRow]:
    statement = select(FEED).where(FEED.c.position > after).order_by(FEED.c.position).limit(limit)
    return [
        FeedRow(
            position=row.position,
            at=row.at,
            kind=FeedKind(row.kind),
            subject=row.subject,
            job=JobId(row.job) if row.job else None,
            project=row.project,
            revision=row.revision,
            aspects=frozenset(map(Aspect, row.aspects.split())),
        )
        for row in connection.execute(statement)
    ]


def bounds(connection: Connection) -> tuple[int, int]:
    row = connection.execute(select(FEED_HEAD.c.floor, FEED_HEAD.c.head)).one()
    return row.floor, row.head


def prune(connection: Connection, *, before: datetime) -> int:
    """Drop at most PRUNE_AT_ONCE of the oldest rows, up to the first one that is not older; returns how many."""
    floor, head = bounds(connection)
    young = select(FEED.c.position).where(FEED.c.at >= before).order_by(FEED.c.position).limit(1)
    first_kept: int | None = connection.execute(young).scalar()
    last = min(head if first_kept is None else first_kept - 1, floor + PRUNE_AT_ONCE)
    if last <= floor:
        return 0
    connection.execute(update(FEED_HEAD).values(floor=last))
    return connection.execute(delete(FEED).where(FEED.c.position <= last)).rowcount
