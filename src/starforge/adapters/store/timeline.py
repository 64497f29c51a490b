"""Entries of the timeline, upserted by id."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, select

from starforge.adapters.store.owners import Owner
from starforge.adapters.store.statements import Insert, insert
from starforge.adapters.store.tables import TIMELINE
from starforge.domain.names import JobId, RunKey
from starforge.domain.timeline import Entry, KubernetesSeen, Severity

RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_SEVERITIES = {rank: severity for severity, rank in RANKS.items()}
_REPLACED = ("type", "severity", "message", "last_at", "count", "kubernetes_reason", "detail")


def write_entries(connection: Connection, entries: Sequence[tuple[int, Entry]], owners: Mapping[JobId, Owner]) -> None:
    """Write entries, each with the position of its row of the feed; one that is there keeps its first position."""
    if not entries:
        return
    connection.execute(
        _upsert(insert(connection, TIMELINE)), [_values(entry, position, owners) for position, entry in entries]
    )


@cache
def _upsert(new: Insert) -> Insert:
    replaced = {name: new.excluded[name] for name in _REPLACED}
    return new.on_conflict_do_update(index_elements=["id"], set_=replaced)


def _values(entry: Entry, position: int, owners: Mapping[JobId, Owner]) -> dict[str, object]:
    run, detail = entry.run, entry.detail
    owner = owners[run.job] if run else None
    return {
        "id": entry.id,
        "position": position,
        "job_id": run.job if run else None,
        "attempt": run.attempt if run else None,
        "project": owner.project if owner else None,
        "fleet": entry.fleet,
        "in_fleet": entry.fleet or (owner.fleet if owner else None),
        "type": entry.type.value,
        "severity": RANKS[entry.severity],
        "message": entry.message,
        "first_at": entry.first_at,
        "last_at": entry.last_at,
        "count": entry.count,
        "kubernetes_reason": detail.reason if isinstance(detail, KubernetesSeen) else None,
        "detail": detail,
    }


def entries(connection: Connection, ids: Sequence[str]) -> Mapping[str, Entry]:
    rows = connection.execute(select(TIMELINE).where(TIMELINE.c.id.in_(ids)))
    return {entry.id: entry for entry in map(entry_of, rows)}


def entry_of(row: Row[Any]) -> Entry:
    return Entry(
        id=row.id,
        run=RunKey(JobId(row.job_id), row.attempt) if row.job_id else None,
        severity=_SEVERITIES[row.severity],
        message=row.message,
        first_at=row.first_at,
        last_at=row.last_at,
        detail=row.detail,
        count=row._mapping["count"],  # Row.count is a method of tuples
        fleet=row.fleet,
    )
