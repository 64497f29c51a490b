"""What was found about the health of everything, and what of it the other tables show."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, case, func, or_, select, update

from starforge.adapters.store.statements import insert
from starforge.adapters.store.tables import COMMAND, HEALTH, OBSERVER
from starforge.adapters.store.tables.work import OPEN, PARKED
from starforge.domain.errors import StaleRevision
from starforge.domain.health import (
    CommandQueue,
    HealthReading,
    HealthReport,
    HealthWrite,
    ObserverHeard,
    ObserverLease,
    ParkedCommand,
)
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.timeline import CommandKind


def read(connection: Connection, *, at: datetime) -> HealthReading:
    return HealthReading(_reports(connection), _observers(connection), _commands(connection, at))


def _reports(connection: Connection) -> Mapping[str, HealthReport]:
    rows = connection.execute(select(HEALTH))
    return {row.subject: replace(row.document, revision=row.revision) for row in rows}


def _observers(connection: Connection) -> Mapping[str, ObserverLease]:
    rows = connection.execute(select(OBSERVER))
    return {
        row.fleet: ObserverLease(row.holder, row.until, ObserverHeard(row.heard_at, row.lag_s, row.problem))
        for row in rows
    }


def _commands(connection: Connection, at: datetime) -> CommandQueue:
    free = or_(COMMAND.c.leased_until.is_(None), COMMAND.c.leased_until <= at)
    waiting = case((free, COMMAND.c.due_at))
    statement = select(func.count(), func.min(COMMAND.c.due_at), func.min(waiting)).where(OPEN, COMMAND.c.due_at <= at)
    due, oldest, waits = connection.execute(statement).one()
    parked = connection.execute(select(func.count()).select_from(COMMAND).where(PARKED)).scalar_one()
    return CommandQueue(due, oldest, waits, parked)


def parked(connection: Connection, *, limit: int) -> Sequence[ParkedCommand]:
    newest = COMMAND.c.parked_at.desc(), COMMAND.c.id.desc()
    return [
        ParkedCommand(
            CommandId(row.id), CommandKind(row.kind), RunKey(JobId(row.job_id), row.attempt), row.tries, row.parked_at,
            row.error,
        )
        for row in connection.execute(select(COMMAND).where(PARKED).order_by(*newest).limit(limit))
    ]  # fmt: skip


def write(connection: Connection, writes: Sequence[HealthWrite]) -> None:
    """Store reports, each in place of the one that it was made from; StaleRevision if there is a newer one."""
    for one in sorted(writes, key=lambda write: write.report.subject):
        report = one.report
        new = insert(connection, HEALTH)
        statement = new.on_conflict_do_update(
            index_elements=["subject"],
            set_={"revision": new.excluded["revision"], "document": new.excluded["document"]},
            where=HEALTH.c.revision == report.revision,
        ).returning(HEALTH.c.subject)
        values = {"subject": report.subject, "revision": report.revision + 1, "document": report}
        if connection.execute(statement, values).first() is None:
            raise StaleRevision(f"Somebody else has checked {report.subject} meanwhile; leave it to them.")


def note_heard(connection: Connection, fleet: str, *, holder: str, heard: ObserverHeard) -> None:
    held = (OBSERVER.c.fleet == fleet) & (OBSERVER.c.holder == holder)
    connection.execute(update(OBSERVER).where(held).values(heard_at=heard.at, lag_s=heard.lag_s, problem=heard.problem))
