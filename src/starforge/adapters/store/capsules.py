"""Code, uploads, Capsules, inline code, and idempotency keys."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, select

from starforge.adapters.store.statements import added, upsert
from starforge.adapters.store.tables import CAPSULE, CODE, IDEMPOTENCY, INLINE_CODE, UPLOAD
from starforge.domain.capsule import InlineFile
from starforge.domain.changes import CapsuleRecord, Changes, CodeRecord, IdempotencyRecord, Upload
from starforge.domain.errors import StaleRevision
from starforge.domain.names import Digest, JobId


def write_idempotency(connection: Connection, records: Sequence[IdempotencyRecord]) -> None:
    for record in records:
        values = asdict(record)
        values["job_id"] = values.pop("job")
        if not added(connection, IDEMPOTENCY, values):
            message = f"The idempotency key {record.key!r} was used already; look up what it was used for."
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


def capsules(connection: Connection, digests: Sequence[Digest]) -> Mapping[Digest, CapsuleRecord]:
    rows = connection.execute(select(CAPSULE).where(CAPSULE.c.digest.in_(digests)))
    return {record.digest: record for record in (CapsuleRecord(**_values(row)) for row in rows)}


def inline_code(connection: Connection, job: JobId) -> Sequence[InlineFile] | None:
    return connection.execute(select(INLINE_CODE.c.files).where(INLINE_CODE.c.job_id == job)).scalar()


def idempotency(connection: Connection, project: str, mutation: str, key: str) -> IdempotencyRecord | None:
    columns = IDEMPOTENCY.c
    statement = select(IDEMPOTENCY).where(columns.project == project, columns.mutation == mutation, columns.key == key)
    row = connection.execute(statement).first()
    if row is None:
        return None
    values = _values(row)
    return IdempotencyRecord(job=values.pop("job_id"), **values)


def _values(row: Row[Any]) -> dict[str, Any]:
    return dict(row._mapping)
