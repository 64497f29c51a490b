"""Commands: asked for once, leased to one worker at a time, fenced by the lease's token and its end."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, literal, or_, select, update

from starforge.adapters.store.columns import Moment
from starforge.adapters.store.statements import Insert, insert
from starforge.adapters.store.tables import COMMAND, JOB
from starforge.adapters.store.tables.work import OPEN
from starforge.domain.changes import Changes, Command, Lease, NewCommand, Retry
from starforge.domain.errors import Defect, StaleRevision
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.timeline import CommandKind

# Workers of several versions share a database while one is rolled out: a kind that we don't know is for a newer one.
_KNOWN = COMMAND.c.kind.in_([kind.value for kind in CommandKind])


def ask(connection: Connection, commands: Sequence[NewCommand], *, at: datetime) -> None:
    """Add commands; one that is open for the same run and kind is brought forward, and runs again if it is leased."""
    if not commands:
        return
    statement = _ask(insert(connection, COMMAND))
    connection.execute(statement, [_values(command) | {"asked_at": at} for command in commands])


@cache
def _ask(new: Insert) -> Insert:
    asked, again = new.excluded["due_at"], COMMAND.c.again_at
    leased = COMMAND.c.leased_until > bindparam("asked_at", type_=COMMAND.c.leased_until.type)
    again_at = case((leased, _earlier(func.coalesce(again, asked), asked)), else_=again)
    return new.on_conflict_do_update(
        index_elements=["job_id", "attempt", "kind"],
        index_where=OPEN,
        set_={"due_at": _earlier(COMMAND.c.due_at, asked), "again_at": again_at},
    )


def _values(command: NewCommand) -> dict[str, object]:
    run = {"job_id": command.run.job, "attempt": command.run.attempt}
    return {"id": command.id, "kind": command.kind.value, "due_at": command.due_at, "tries": 0, "outages": 0} | run


def _earlier(one: ColumnElement[datetime], other: ColumnElement[datetime]) -> ColumnElement[datetime]:
    return case((one <= other, one), else_=other)


def settle(connection: Connection, changes: Changes, lease: Lease | None, *, at: datetime) -> None:
    """Say what becomes of the leased command; StaleRevision if the lease has run out or was superseded."""
    if lease is None:
        if changes.done or changes.retry or changes.park is not None:
            raise Defect("A commit without a lease can't say what becomes of a command.")
        return
    outcome = _outcome(changes, at=at)
    if connection.execute(update(COMMAND).where(_held(lease, at)).values(outcome)).rowcount != 1:
        raise StaleRevision(f"The lease on command {lease.command.id} is over; leave it to whoever has it now.")


def _outcome(changes: Changes, *, at: datetime) -> dict[str, object]:
    free = {"token": None, "leased_until": None, "again_at": None}
    if changes.park is not None:
        return free | {"parked_at": at, "error": changes.park}
    if changes.retry is not None:
        return free | _retry(changes.retry)
    if changes.done:
        return free | _done(at)
    return {"token": COMMAND.c.token}


def _retry(retry: Retry) -> dict[str, object]:
    later = literal(retry.due_at, Moment())
    due = _earlier(func.coalesce(COMMAND.c.again_at, later), later)
    if retry.error is None:
        return {"due_at": due, "tries": COMMAND.c.tries - 1}
    return {"due_at": due, "error": retry.error, "outages": COMMAND.c.outages + int(retry.outage)}


def _done(at: datetime) -> dict[str, object]:
    again = COMMAND.c.again_at
    return {
        "done_at": case((again.is_(None), literal(at, Moment()))),
        "due_at": func.coalesce(again, COMMAND.c.due_at),
        "tries": case((again.is_(None), COMMAND.c.tries), else_=0),
        "outages": case((again.is_(None), COMMAND.c.outages), else_=0),
    }


def take(connection: Connection, command: CommandId, *, token: str, at: datetime, lease_s: float) -> Lease | None:
    """Compare and set; the job's row is locked first, so that two commands of a job can't be taken at once."""
    job = select(COMMAND.c.job_id).where(COMMAND.c.id == command).scalar_subquery()
    connection.execute(select(JOB.c.id).where(JOB.c.id == job).with_for_update(key_share=True))
    other = COMMAND.alias("other")
    busy = select(other.c.id).where(other.c.job_id == COMMAND.c.job_id, other.c.leased_until > at)
    until = at + timedelta(seconds=lease_s)
    statement = (
        update(COMMAND)
        .where(COMMAND.c.id == command, OPEN, COMMAND.c.due_at <= at, _KNOWN, ~busy.exists())
        .values(token=token, leased_until=until, again_at=None, tries=COMMAND.c.tries + 1)
        .returning(COMMAND.c.kind, COMMAND.c.job_id, COMMAND.c.attempt, COMMAND.c.tries, COMMAND.c.outages)
    )
    row = connection.execute(statement).first()
    if row is None:
        return None
    run = RunKey(JobId(row.job_id), row.attempt)
    return Lease(Command(command, CommandKind(row.kind), run, row.tries, row.outages), token, until)


def renew(connection: Connection, lease: Lease, *, at: datetime, lease_s: float) -> bool:
    """Only what is held still: a lease that ran out may be somebody else's by now."""
    until = at + timedelta(seconds=lease_s)
    return connection.execute(update(COMMAND).where(_held(lease, at)).values(leased_until=until)).rowcount == 1


def _held(lease: Lease, at: datetime) -> ColumnElement[bool]:
    ours = (COMMAND.c.id == lease.command.id) & (COMMAND.c.token == lease.token)
    # Once it has run out, another command of the job may be at work, even if nobody has taken this one.
    return ours & COMMAND.c.done_at.is_(None) & (COMMAND.c.leased_until > at)


def due(
    connection: Connection, *, at: datetime, limit: int, jobs: Sequence[JobId] | None = None
) -> Sequence[CommandId]:
    free = or_(COMMAND.c.leased_until.is_(None), COMMAND.c.leased_until <= at)
    statement = select(COMMAND.c.id).where(OPEN, COMMAND.c.due_at <= at, _KNOWN, free)
    if jobs is not None:
        statement = statement.where(COMMAND.c.job_id.in_(jobs))
    return connection.execute(statement.order_by(COMMAND.c.due_at, COMMAND.c.id).limit(limit)).scalars().all()
