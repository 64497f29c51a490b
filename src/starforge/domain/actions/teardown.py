"""Removes what an attempt had in the cluster and ends the job when all of it is proven gone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starforge.domain.actions.apply import apply, guarded, load
from starforge.domain.actions.remove_stray import remove
from starforge.domain.changes import Changes, Lease, Retry
from starforge.domain.errors import FleetRefused
from starforge.domain.job import Job, JobState, end
from starforge.domain.names import RunKey
from starforge.domain.news import changed_pods, pod_entries
from starforge.domain.observation import RunPhase, RunSeen
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason
from starforge.domain.strays import stray
from starforge.domain.teardown import Found, RemainingObject, TeardownState, looked, pause
from starforge.domain.telling import write


@dataclass(frozen=True)
class _Look:
    """What is left, or why the fleet will not remove it or say so."""

    remaining: Sequence[RemainingObject] = ()
    refused: Reason | None = None


def teardown(ports: Ports, lease: Lease) -> None:
    """TEARDOWN: delete, look what is left, and come again until nothing is; the watch brings the next look forward.

    What does not go is named, and tried again less and less often, for ever. What came after the release of its attempt
    is removed as a stray.
    """
    job = load(ports, lease.command.run.job)
    if job.run != lease.command.run or job.attempt.released_at:
        _remove_late(ports, job, lease.command.run)
    if job.run != lease.command.run or job.state is not JobState.FINISHING or job.attempt.released_at:
        return apply(ports, Changes(done=True), lease)
    after = _note(ports, job, _remove(ports, job) if was_launched(job) else _Look())
    left = after.attempt.teardown
    if after.run != job.run or left is None or left.state is TeardownState.RELEASED:
        return apply(ports, Changes(done=True), lease)
    apply(ports, Changes(retry=Retry(ports.now() + pause(left, ports.now()))), lease)


def _remove_late(ports: Ports, job: Job, run: RunKey) -> None:
    """Once: the sweep comes back to what does not go."""
    found = tuple(Found(run, left, ports.now()) for left in ports.fleet.remaining(run))
    attempts = ports.store.attempts([job.id]).get(job.id, ()) if run != job.run else ()
    one = stray(run, found, job, attempts) if found else None
    if one and one.proven and not one.terminating:
        remove(ports, one)


def was_launched(job: Job) -> bool:
    """Whether anything of the attempt may be in the cluster."""
    return any(span.state in (JobState.LAUNCHING, JobState.PENDING) for span in job.attempt.spans)


def _remove(ports: Ports, job: Job) -> _Look:
    try:
        ports.fleet.delete(job.run)
        return _Look(ports.fleet.remaining(job.run))
    except FleetRefused as refused:
        known = job.attempt.teardown
        return _Look(known.remaining if known else (), refused.reason)


def _note(ports: Ports, job: Job, look: _Look) -> Job:
    def decide(found: Job) -> Changes | None:
        before = found.attempt.teardown
        if found.run != job.run or before is None or found.attempt.released_at:
            return None
        at = ports.now()
        changes = Changes()
        removal = looked(before, look.remaining, at, refused=look.refused)
        after = found.with_attempt(replace(found.attempt, teardown=removal, released_at=removal.released_at))
        if removal.released_at:
            _pods_gone(ports, found, changes, at)
            after = end(after, at) if after.attempt.logs_archived_at else after
        if after == found:
            return None
        write(changes, found, after, at, ports.random)
        return changes

    return guarded(ports, job.id, decide)


def _pods_gone(ports: Ports, job: Job, changes: Changes, at: datetime) -> None:
    """Nothing is left, so no Pod is: the watch may tell it only after the job has ended, when nobody listens."""
    nothing = RunSeen(job.run, RunPhase.ABSENT, at)
    pairs = changed_pods(ports.store.pods([job.run]).get(job.run, ()), nothing)
    changes.pods += [(job.run, pod) for _, pod in pairs]
    changes.extend(pod_entries(job.run, pairs, at, ports.random))
