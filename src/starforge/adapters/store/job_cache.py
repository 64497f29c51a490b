"""Jobs that were read before, for lists that are read much more often than their jobs change."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row
from sqlalchemy import type_coerce as as_type
from sqlalchemy.types import NULLTYPE

from starforge.adapters.store.job_rows import job_of, select_jobs_by_id
from starforge.adapters.store.tables import JOB
from starforge.domain.job import Job
from starforge.domain.names import JobId

KEPT = 10_000
"""At least this many of the jobs that were asked for last, at about 6 kB each, and at most twice as many."""


class Stamp(NamedTuple):
    """What a row has of its own: it never changes without the next revision.

    The time is there for a database that was set back to a backup, where a revision may come a second time; it is as
    the driver gives it.
    """

    id: JobId
    revision: int
    updated_at: object


STAMP = (JOB.c.id, JOB.c.revision, as_type(JOB.c.updated_at, NULLTYPE).label("updated_at"))
"""The columns of a stamp."""


_READ = attrgetter(*Stamp._fields)


def stamp_of(row: Row[Any]) -> Stamp:
    return Stamp._make(_READ(row))


class JobCache:
    """Of one store. Threads share it without a lock, as each step is one operation of a dict and a job never changes:
    the worst that can happen is that a job is read again."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._young: dict[Stamp, Job] = {}
        self._old: dict[Stamp, Job] = {}

    def jobs(self, connection: Connection, stamps: Sequence[Stamp]) -> Mapping[JobId, Job]:
        """The jobs with these stamps, in at most one statement; one that has changed since as it is now."""
        found = {stamp.id: job for stamp in stamps if (job := self._known(stamp))}
        missing = [stamp.id for stamp in stamps if stamp.id not in found]
        return {**found, **self._read(connection, missing)} if missing else found

    def _known(self, stamp: Stamp) -> Job | None:
        known = self._young.get(stamp)
        if known is None and (known := self._old.get(stamp)) is not None:
            self._keep(stamp, known)
        return known

    def _read(self, connection: Connection, ids: Iterable[JobId]) -> Mapping[JobId, Job]:
        rows = connection.execute(_BY_ID, {"ids": list(ids)}).all()
        jobs = {}
        for row in rows:
            job = jobs[row.id] = job_of(row)
            self._keep(Stamp(row.id, row.revision, row.stamped), job)
        return jobs

    def _keep(self, stamp: Stamp, job: Job) -> None:
        self._young[stamp] = job
        if len(self._young) > self._kept:
            self._old, self._young = self._young, {}


_BY_ID = select_jobs_by_id().add_columns(as_type(JOB.c.updated_at, NULLTYPE).label("stamped"))
