"""Who we are, which runs were strays last time, and what is forgotten because it is old."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, exists, select, tuple_

from starforge.adapters.store.statements import added, insert_new
from starforge.adapters.store.tables import COMMAND, INSTALLATION, JOB, STRAY, UPLOAD
from starforge.domain.changes import Upload
from starforge.domain.job import JobState
from starforge.domain.names import JobId, RunKey

PRUNE_AT_ONCE = 5_000
_ONLY = 1
_TO_BE_PACKAGED = (JobState.SUBMITTED.value, JobState.PACKAGING.value)


def known_installation(connection: Connection) -> str | None:
    return connection.execute(select(INSTALLATION.c.id)).scalar()


def installation(connection: Connection, *, new: str) -> str:
    added(connection, INSTALLATION, {"number": _ONLY, "id": new})
    return known_installation(connection) or new


def strays(connection: Connection, fleet: str) -> Mapping[RunKey, datetime]:
    rows = connection.execute(select(STRAY).where(STRAY.c.fleet == fleet))
    return {RunKey(JobId(row.job_id), row.attempt): row.since for row in rows}


def note_strays(connection: Connection, fleet: str, runs: Sequence[RunKey], *, at: datetime) -> None:
    known = strays(connection, fleet).keys()
    over = [(run.job, run.attempt) for run in known - set(runs)]
    if over:
        gone = tuple_(STRAY.c.job_id, STRAY.c.attempt).in_(over)
        connection.execute(delete(STRAY).where(STRAY.c.fleet == fleet, gone))
    new = [{"fleet": fleet, "job_id": run.job, "attempt": run.attempt, "since": at} for run in set(runs) - known]
    if new:
        connection.execute(insert_new(connection, STRAY), new)


def prune_commands(connection: Connection, *, before: datetime) -> int:
    """Forget at most PRUNE_AT_ONCE."""
    old = select(COMMAND.c.id).where(COMMAND.c.done_at < before).limit(PRUNE_AT_ONCE)
    return connection.execute(delete(COMMAND).where(COMMAND.c.id.in_(old))).rowcount


def unused_uploads(connection: Connection, *, before: datetime, limit: int) -> Sequence[Upload]:
    columns, other = UPLOAD.c, UPLOAD.alias("other")
    awaited = exists().where(JOB.c.code == columns.digest, JOB.c.state.in_(_TO_BE_PACKAGED))
    same_object = other.c.transport_sha256 == columns.transport_sha256
    announced_since = exists().where(same_object, other.c.requested_at >= before)
    statement = select(UPLOAD).where(columns.requested_at < before, ~awaited, ~announced_since)
    rows = connection.execute(statement.order_by(columns.requested_at, columns.digest).limit(limit))
    return [Upload(**row._mapping) for row in rows]


def forget_upload(connection: Connection, upload: Upload) -> bool:
    same = (UPLOAD.c.digest == upload.digest) & (UPLOAD.c.requested_at == upload.requested_at)
    return connection.execute(delete(UPLOAD).where(same)).rowcount == 1
