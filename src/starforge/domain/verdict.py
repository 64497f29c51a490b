"""From what is seen of a run to the next state of its job: pure, and only ever on something seen."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from starforge.domain.endings import corrected, ended, ended_itself, exited, ran
from starforge.domain.failfast import spent
from starforge.domain.heads import head_lost, head_of
from starforge.domain.job import (
    Attempt,
    Job,
    JobOutcome,
    JobState,
    RunIdentity,
    advance,
    conclude,
    finish,
    has_left_queue,
)
from starforge.domain.losses import EXPLAINS, lost_worker
from starforge.domain.names import run_name
from starforge.domain.observation import ENDED_PHASES, PodView, RunPhase, RunSeen
from starforge.domain.reason import Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, keep_since, reason
from starforge.domain.silent_nodes import silent
from starforge.domain.teardown import TeardownState

_SEEN_IN = (JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING)


def judge(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime, known: Sequence[PodView] = ()) -> Job:
    """The job after `seen`. `waits_for` is what holds the run if it waits (domain/pending.py), `known` its Pods before.

    Without `waits_for` a run that waits is not judged by what held it.
    """
    before = job.attempt
    job = job.with_attempt(_noticed(job, seen, known, at))
    if job.decided or job.state not in _SEEN_IN:
        return corrected(_by_first_cause(job, seen, at), at)
    if job.attempt.ending and (seen.phase in ENDED_PHASES or seen.phase is RunPhase.ABSENT):
        return conclude(job, JobOutcome.FAILED, None, at)
    lost = _taken_away(job, seen, at) or head_lost(before, job, seen, known, at)
    if lost is None:
        after = _by_phase(job, seen, waits_for, at)
        begins = after.state is JobState.RUNNING and after.state is not job.state
        return judge(after, seen, waits_for, at, known) if begins else after
    if ended_itself(job.attempt) and job.attempt.ending is None:
        return exited(advance(job, JobState.RUNNING, at), at)
    job = _launched(job, at)
    failed_fast = spent(hold(job, waits_for), at) if waits_for and job.state is JobState.PENDING else None
    return conclude(job, JobOutcome.FAILED, failed_fast or lost, at)


def _by_phase(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime) -> Job:
    if seen.phase in ENDED_PHASES:
        return ended(advance(job, JobState.RUNNING, at) if ran(job, seen) else _launched(job, at), seen, at)
    if seen.phase is RunPhase.ABSENT:
        return _absent(job, at)
    if seen.phase is RunPhase.RUNNING:
        return _held_up(advance(job, JobState.RUNNING, at), seen, at)
    job = _launched(job, at)
    return _wait(job if seen.rayjob and seen.rayjob.suspended else has_left_queue(job, at), waits_for, at)


def _held_up(job: Job, seen: RunSeen, at: datetime) -> Job:
    """A job that runs, with what may have stopped it without ending it."""
    why = next(silent(seen.pods, at), None)
    return job.with_attempt(replace(job.attempt, reason=keep_since(why, job.attempt.reason) if why else None))


def _wait(job: Job, waits_for: Reason | None, at: datetime) -> Job:
    job = hold(job, waits_for)
    why = spent(job, at) if waits_for else None
    return conclude(job, JobOutcome.FAILED, why, at) if why else job


def hold(job: Job, waits_for: Reason | None) -> Job:
    """The job with what holds it, if it waits for its machines."""
    if waits_for is None or job.state is not JobState.PENDING:
        return job
    return job.with_attempt(replace(job.attempt, reason=keep_since(waits_for, job.attempt.reason)))


def _noticed(job: Job, seen: RunSeen, known: Sequence[PodView], at: datetime) -> Attempt:
    attempt, head = job.attempt, head_of(seen.pods)
    first = attempt.head_uid
    if head and (first is None or job.state in (JobState.LAUNCHING, JobState.PENDING)):
        first = head.uid  # until something was started on it, a head may be replaced
    return replace(
        attempt,
        run=_identity(job, seen),
        observed_at=seen.at,
        rayjob=seen.rayjob or attempt.rayjob,
        head_uid=first,
        lost=_lost_worker(job, seen, known, at),
    )


def _lost_worker(job: Job, seen: RunSeen, known: Sequence[PodView], at: datetime) -> Reason | None:
    """The newest loss of a worker; that of another one soon after is part of the same story."""
    old = job.attempt.lost
    runs = job.state is JobState.RUNNING and not job.decided and job.attempt.exited_at is None
    if not runs or seen.phase is RunPhase.ABSENT or (old and at - old.since <= EXPLAINS):
        return old
    return lost_worker(seen, known, at) or old


def _identity(job: Job, seen: RunSeen) -> RunIdentity | None:
    """What the run is called, also when whoever created it could not write it down."""
    known = job.attempt.run
    if known is None and seen.phase is not RunPhase.ABSENT:
        namespace = seen.rayjob.namespace if seen.rayjob else None
        return RunIdentity(run_name(job.spec.name, job.run), namespace, seen.uid)
    return replace(known, uid=seen.uid) if known and seen.uid and known.uid is None else known


def _launched(job: Job, at: datetime) -> Job:
    return advance(job, JobState.PENDING, at)


def _absent(job: Job, at: datetime) -> Job:
    if job.attempt.run is None or job.state is JobState.LAUNCHING:
        return job
    if ended_itself(job.attempt):
        return exited(advance(job, JobState.RUNNING, at), at)
    return finish(job, JobOutcome.FAILED, _deleted(job.attempt.run.name, "was deleted", None, at), at)


def _taken_away(job: Job, seen: RunSeen, at: datetime) -> Reason | None:
    """Nobody of us removes a run before its outcome is known, nor makes it twice."""
    view, run = seen.rayjob, job.attempt.run
    if view is None or run is None or job.state is JobState.LAUNCHING or seen.phase in ENDED_PHASES:
        return None
    ref = ObjectRef("RayJob", view.name, view.namespace, view.uid)
    if view.deletion_requested_at:
        return _deleted(run.name, "is being deleted", ref, at)
    return _deleted(run.name, "was replaced by another one", ref, at) if run.uid not in (None, view.uid) else None


def _by_first_cause(job: Job, seen: RunSeen, at: datetime) -> Job:
    """The job with its true reason, if its head was seen to go before its RayJob, and somebody else removes both."""
    why, removal, run = job.attempt.reason, job.attempt.teardown, job.attempt.run
    ours = removal is None or removal.state is not TeardownState.AWAITING_ARCHIVE
    if ours or run is None or why is None or why.code is not ReasonCode.HEAD_LOST:
        return job
    if not why.evidence or why.evidence[0].source is not EvidenceSource.POD_STATUS:
        return job
    view = seen.rayjob
    going = view is not None and view.deletion_requested_at is not None
    if not going and seen.phase is not RunPhase.ABSENT:
        return job
    ref = ObjectRef("RayJob", view.name, view.namespace, view.uid) if view else None
    true = _deleted(run.name, "is being deleted" if going else "was deleted", ref, at)
    return job.with_attempt(replace(job.attempt, reason=replace(true, evidence=(*true.evidence, *why.evidence)[:10])))


def _deleted(name: str, how: str, ref: ObjectRef | None, at: datetime) -> Reason:
    evidence = (Evidence(EvidenceSource.RAYJOB_STATUS, f"RayJob {name} {how}", at, ref),)
    advice = "Retry the job when you know who removes its objects."
    message = f"Run {name} {how} by somebody else."
    return reason(ReasonCode.DELETED_OUTSIDE, message, at, advice=advice, evidence=evidence)
