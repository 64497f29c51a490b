"""Removes what an attempt had in the cluster and ends the job when all of it is proven gone."""

from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import apply, guarded, load
from starforge.domain.changes import Changes, Lease, Retry
from starforge.domain.job import Job, JobState, end
from starforge.domain.news import changed_pods, pod_entries
from starforge.domain.observation import RunPhase, RunSeen
from starforge.domain.ports import Ports
from starforge.domain.teardown import RemainingObject, Teardown, TeardownState
from starforge.domain.telling import write

AGAIN = timedelta(seconds=2)


def teardown(ports: Ports, lease: Lease) -> None:
    """TEARDOWN: delete, look what is left, and come again until nothing is; the watch brings the next look forward."""
    job = load(ports, lease.command.run.job)
    if job.run != lease.command.run or job.state is not JobState.FINISHING or job.attempt.released_at:
        return apply(ports, Changes(done=True), lease)
    if was_launched(job):
        ports.fleet.delete(job.run)
        remaining = tuple(ports.fleet.remaining(job.run))
    else:
        remaining = ()
    _note(ports, job, remaining)
    outcome = Changes(retry=Retry(ports.now() + AGAIN)) if remaining else Changes(done=True)
    apply(ports, outcome, lease)


def was_launched(job: Job) -> bool:
    """Whether anything of the attempt may be in the cluster."""
    return any(span.state in (JobState.LAUNCHING, JobState.PENDING) for span in job.attempt.spans)


def _note(ports: Ports, job: Job, remaining: tuple[RemainingObject, ...]) -> None:
    def decide(found: Job) -> Changes | None:
        before = found.attempt.teardown
        if found.run != job.run or before is None or found.attempt.released_at:
            return None
        at = ports.now()
        changes = Changes()
        after = found.with_attempt(replace(found.attempt, teardown=replace(before, remaining=remaining[:100])))
        if not remaining:
            _pods_gone(ports, found, changes, at)
            released = Teardown(TeardownState.RELEASED, before.started_at, released_at=at)
            after = after.with_attempt(replace(after.attempt, teardown=released, released_at=at))
            after = end(after, at) if after.attempt.logs_archived_at else after
        if after == found:
            return None
        write(changes, found, after, at, ports.random)
        return changes

    guarded(ports, job.id, decide)


def _pods_gone(ports: Ports, job: Job, changes: Changes, at: datetime) -> None:
    """Nothing is left, so no Pod is: the watch may tell it only after the job has ended, when nobody listens."""
    nothing = RunSeen(job.run, RunPhase.ABSENT, at)
    pairs = changed_pods(ports.store.pods([job.run]).get(job.run, ()), nothing)
    changes.pods += [(job.run, pod) for _, pod in pairs]
    changes.extend(pod_entries(job.run, pairs, at, ports.random))
