"""Whose a job or playground is, for rows that carry its project and fleet: they can be filtered without a join."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, Table, select

from starforge.adapters.store.tables import JOB, PLAYGROUND
from starforge.domain.changes import Changes
from starforge.domain.errors import NotFound
from starforge.domain.names import JobId, RunKey, playground_of


@dataclass(frozen=True)
class Owner:
    project: str
    fleet: str | None


def owners_of(connection: Connection, changes: Changes) -> Mapping[JobId, Owner]:
    """Owners of every job and playground that `changes` mentions; NotFound if one of them does not exist."""
    known = {write.job.id: Owner(write.job.spec.project, write.job.spec.fleet) for write in changes.jobs}
    for playground in (write.playground for write in changes.playgrounds):
        known[playground.key.job] = Owner(playground.spec.machine.project, playground.spec.machine.fleet)
    missing = _mentioned(changes) - known.keys()
    if not missing:
        return known
    played = {run.job for run in (RunKey(job, 1) for job in missing) if playground_of(run)}
    known |= _owners(connection, JOB, missing - played) | _owners(connection, PLAYGROUND, played)
    if unknown := missing - known.keys():
        raise NotFound(
            f"There is no job or playground {', '.join(sorted(unknown))} that something could be written about."
        )
    return known


def _owners(connection: Connection, table: Table, ids: set[JobId]) -> dict[JobId, Owner]:
    if not ids:
        return {}
    statement = select(table.c.id, table.c.project, table.c.fleet).where(table.c.id.in_(sorted(ids)))
    return {JobId(row.id): Owner(row.project, row.fleet) for row in connection.execute(statement)}


def _mentioned(changes: Changes) -> set[JobId]:
    runs = [entry.run for entry in changes.entries if entry.run]
    runs += [write.source.run for write in changes.logs]
    runs += [run for run, _ in changes.metrics] + [run for run, _ in changes.pods]
    runs += [command.run for command in changes.commands]
    return {run.job for run in runs}
