"""Code, uploads, Capsules, inline code, and idempotency keys."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, exists, select, tuple_

from starforge.adapters.store.statements import all_added, upsert
from starforge.adapters.store.tables import CAPSULE, CODE, IDEMPOTENCY, INLINE_CODE, JOB, UPLOAD
from starforge.domain.capsule import InlineFile
from starforge.domain.changes import CapsuleRecord, Changes, CodeRecord, IdempotencyRecord, Upload
from starforge.domain.errors import StaleRevision
from starforge.domain.names import Digest, JobId


def write_idempotency(connection: Connection, records: Sequence[IdempotencyRecord]) -> None:
    values = [asdict(record) for record in records]
    for one in values:
        one["job_id"] = one.pop("job")
    if not all_added(connection, IDEMPOTENCY, values):
        keys = ", ".join(repr(record.key) for record in records)
        message = f"An idempotency key of {keys} was used already; look up what it was used for."
        raise StaleRevision(message)


def write_code(connection: Connection, changes: Changes) -> None:
    """Records of code, uploads and Capsules, and inline code that comes or goes."""
    tables: Sequence[tuple[Table, Sequence[Any]]] = (
        (CODE, changes.code),
        (UPLOAD, changes.uploads),
        (CAPSULE, changes.capsules),
    )
    for table, records in tables:
        if records:
            connection.execute(upsert(connection, table), [asdict(record) for record in records])
    if changes.inline:
        values = [{"job_id": inline.job, "files": inline.files} for inline in changes.inline]
        connection.execute(upsert(connection, INLINE_CODE), values)
    if changes.drop_inline:
        connection.execute(delete(INLINE_CODE).where(INLINE_CODE.c.job_id.in_(changes.drop_inline)))


def code(connection: Connection, digest: Digest) -> CodeRecord | None:
    row = connection.execute(select(CODE).where(CODE.c.digest == digest)).first()
    return CodeRecord(**_values(row)) if row else None


def upload(connection: Connection, digest: Digest) -> Upload | None:
    row = connection.execute(select(UPLOAD).where(UPLOAD.c.digest == digest)).first()
    return Upload(**_values(row)) if row else None


def capsules(
    connection: Connection, digests: Sequence[Digest], *, projects: Sequence[str] | None = None
) -> Mapping[Digest, CapsuleRecord]:
    statement = select(CAPSULE).where(CAPSULE.c.digest.in_(digests))
    if projects is not None:
        # The code as well, because it has an index.
        uses = (JOB.c.code == CAPSULE.c.code, JOB.c.capsule == CAPSULE.c.digest, JOB.c.project.in_(projects))
        statement = statement.where(exists().where(*uses))
    rows = connection.execute(statement)
    return {record.digest: record for record in (CapsuleRecord(**_values(row)) for row in rows)}


def inline_code(connection: Connection, job: JobId) -> Sequence[InlineFile] | None:
    return connection.execute(select(INLINE_CODE.c.files).where(INLINE_CODE.c.job_id == job)).scalar()


def known_code(connection: Connection, digests: Sequence[Digest]) -> frozenset[Digest]:
    stored, announced = (select(table.c.digest).where(table.c.digest.in_(digests)) for table in (CODE, UPLOAD))
    return frozenset(connection.execute(stored.union(announced)).scalars())


def idempotencies(
    connection: Connection, mutation: str, keys: Sequence[tuple[str, str]]
) -> Mapping[tuple[str, str], IdempotencyRecord]:
    columns = IDEMPOTENCY.c
    statement = select(IDEMPOTENCY).where(
        columns.mutation == mutation, tuple_(columns.project, columns.key).in_(list(keys))
    )
    found = (_record(row) for row in connection.execute(statement))
    return {(record.project, record.key): record for record in found}


def prune_idempotency(connection: Connection, *, before: datetime) -> int:
    return connection.execute(delete(IDEMPOTENCY).where(IDEMPOTENCY.c.created_at < before)).rowcount


def _record(row: Row[Any]) -> IdempotencyRecord:
    values = _values(row)
    return IdempotencyRecord(job=values.pop("job_id"), **values)


def _values(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)
