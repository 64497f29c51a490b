"""Writing and reading jobs, their attempts and Pods."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, select, tuple_, update

from starforge.adapters.store.job_rows import birth_of, job_of, select_jobs_by_id, values_of
from starforge.adapters.store.statements import all_added, insert, upsert
from starforge.adapters.store.tables import ATTEMPT, JOB, JOB_LABEL, JOB_SERIES, POD
from starforge.domain.changes import JobWrite
from starforge.domain.errors import StaleRevision
from starforge.domain.job import Attempt, Job
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import PodView

_BY_ID = select_jobs_by_id()
_REPLACE = update(JOB).where(JOB.c.id == bindparam("read_id"), JOB.c.revision == bindparam("read_revision"))


def write_jobs(connection: Connection, writes: Sequence[JobWrite]) -> None:
    jobs = [write.job for write in writes]
    new = [job for job in jobs if job.revision == 0]
    _create(connection, new)
    for job in jobs:
        if job.revision:
            _replace(connection, job)
    attempts = [{"job_id": job.id, "number": job.attempt.number, "document": job.attempt} for job in jobs]
    if attempts:
        connection.execute(upsert(connection, ATTEMPT), attempts)
    _index(connection, new)


def _create(connection: Connection, jobs: Sequence[Job]) -> None:
    if not all_added(connection, JOB, [birth_of(job) | values_of(job) for job in jobs]):
        raise StaleRevision(f"{', '.join(job.id for job in jobs)}: one is there already; load it and decide again.")


def _replace(connection: Connection, job: Job) -> None:
    read = {"read_id": job.id, "read_revision": job.revision}
    if connection.execute(_REPLACE, values_of(job) | read).rowcount != 1:
        raise StaleRevision(f"{job.id} is not at revision {job.revision} any more; load it and decide again.")


def _index(connection: Connection, jobs: Sequence[Job]) -> None:
    series = [
        {"job_id": job.id, "series": name} for job in jobs for name in sorted({pool.series for pool in job.spec.pools})
    ]
    labels = [{"job_id": job.id, "key": label.key, "value": label.value} for job in jobs for label in job.spec.labels]
    if series:
        connection.execute(insert(connection, JOB_SERIES), series)
    if labels:
        connection.execute(insert(connection, JOB_LABEL), labels)


def write_pods(connection: Connection, pods: Sequence[tuple[RunKey, PodView]]) -> None:
    if pods:
        connection.execute(upsert(connection, POD), [_pod_values(run, pod) for run, pod in pods])


def _pod_values(run: RunKey, pod: PodView) -> dict[str, object]:
    key = {"job_id": run.job, "attempt": run.attempt, "uid": pod.uid}
    return key | {"created_at": pod.created_at, "name": pod.name, "document": pod}


def jobs_by_id(connection: Connection, jobs: Iterable[JobId]) -> Mapping[JobId, Job]:
    rows = connection.execute(_BY_ID, {"ids": list(jobs)})
    return {job.id: job for job in map(job_of, rows)}


def attempts(connection: Connection, jobs: Sequence[JobId]) -> Mapping[JobId, Sequence[Attempt]]:
    statement = select(ATTEMPT.c.job_id, ATTEMPT.c.document).where(ATTEMPT.c.job_id.in_(jobs))
    found: dict[JobId, list[Attempt]] = defaultdict(list)
    for job, attempt in connection.execute(statement.order_by(ATTEMPT.c.job_id, ATTEMPT.c.number)):
        found[job].append(attempt)
    return dict(found)


def overdue(connection: Connection, *, at: datetime, limit: int) -> Sequence[JobId]:
    statement = select(JOB.c.id).where(JOB.c.due_at <= at).order_by(JOB.c.due_at, JOB.c.id).limit(limit)
    return connection.execute(statement).scalars().all()


def pods(connection: Connection, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[PodView]]:
    statement = select(POD.c.job_id, POD.c.attempt, POD.c.document)
    statement = statement.where(tuple_(POD.c.job_id, POD.c.attempt).in_(run_pairs(runs)))
    found: dict[RunKey, list[PodView]] = defaultdict(list)
    for job, attempt, pod in connection.execute(statement.order_by(POD.c.created_at, POD.c.name, POD.c.uid)):
        found[RunKey(job, attempt)].append(pod)
    return dict(found)


def run_pairs(runs: Iterable[RunKey]) -> list[tuple[str, int]]:
    """Runs as the values of their two columns."""
    return [(run.job, run.attempt) for run in runs]
