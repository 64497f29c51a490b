"""Whose a job is, for rows that carry its project and fleet so that they can be filtered without a join."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from starforge.adapters.store.tables import JOB
from starforge.domain.changes import Changes
from starforge.domain.errors import NotFound
from starforge.domain.names import JobId


@dataclass(frozen=True)
class Owner:
    project: str
    fleet: str | None


def owners_of(connection: Connection, changes: Changes) -> Mapping[JobId, Owner]:
    """Owners of every job that `changes` mentions; NotFound if one of them does not exist."""
    known = {write.job.id: Owner(write.job.spec.project, write.job.spec.fleet) for write in changes.jobs}
    missing = _mentioned(changes) - known.keys()
    if not missing:
        return known
    statement = select(JOB.c.id, JOB.c.project, JOB.c.fleet).where(JOB.c.id.in_(sorted(missing)))
    known |= {JobId(row.id): Owner(row.project, row.fleet) for row in connection.execute(statement)}
    if unknown := missing - known.keys():
        raise NotFound(f"There is no job {', '.join(sorted(unknown))} that something could be written about.")
    return known


def _mentioned(changes: Changes) -> set[JobId]:
    runs = [entry.run for entry in changes.entries if entry.run]
    runs += [write.source.run for write in changes.logs]
    runs += [run for run, _ in changes.metrics] + [run for run, _ in changes.pods]
    runs += [command.run for command in changes.commands]
    return {run.job for run in runs}
