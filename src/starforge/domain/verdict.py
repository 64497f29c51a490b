"""From what is seen of a run to the next state of its job: pure, and only ever on something seen."""

import re
from dataclasses import replace
from datetime import datetime

from starforge.domain.job import Attempt, Job, JobOutcome, JobState, advance, finish
from starforge.domain.observation import ENDED_PHASES, PodPhase, PodRole, PodView, RunPhase, RunSeen
from starforge.domain.reason import Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, keep_since, reason

_EXIT_CODE = re.compile(r"exit code:? (\d+)")


def judge(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime) -> Job:
    """The job after `seen`. `waits_for` is what holds the run if it waits (domain/pending.py)."""
    job = job.with_attempt(_noticed(job.attempt, seen))
    if job.decided or job.state not in (JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING):
        return job
    if job.attempt.ending and (seen.phase in ENDED_PHASES or seen.phase is RunPhase.ABSENT):
        return finish(job, job.attempt.ending.outcome, job.attempt.ending.reason, at)
    lost = _head_lost(job, seen, at)
    if lost:
        return finish(_launched(job, at), JobOutcome.FAILED, lost, at)
    return _by_phase(job, seen, waits_for, at)


def _by_phase(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime) -> Job:
    if seen.phase in ENDED_PHASES:
        return _ended(advance(job, JobState.RUNNING, at) if _ran(job, seen) else _launched(job, at), seen, at)
    if seen.phase is RunPhase.ABSENT:
        return _absent(job, at)
    if seen.phase is RunPhase.RUNNING:
        return advance(job, JobState.RUNNING, at)
    job = _launched(job, at)
    if waits_for and job.state is JobState.PENDING:
        return job.with_attempt(replace(job.attempt, reason=keep_since(waits_for, job.attempt.reason)))
    return job


def _noticed(attempt: Attempt, seen: RunSeen) -> Attempt:
    run = attempt.run
    if run and seen.uid and run.uid is None:
        run = replace(run, uid=seen.uid)
    head = _head(seen)
    return replace(
        attempt,
        run=run,
        observed_at=seen.at,
        rayjob=seen.rayjob or attempt.rayjob,
        head_uid=attempt.head_uid or (head.uid if head else None),
    )


def _head(seen: RunSeen) -> PodView | None:
    return next((pod for pod in seen.pods if pod.role is PodRole.HEAD and not pod.gone_at), None)


def _launched(job: Job, at: datetime) -> Job:
    return advance(job, JobState.PENDING, at)


def _ran(job: Job, seen: RunSeen) -> bool:
    return seen.phase is RunPhase.SUCCEEDED or _exit_code(job, seen) is not None


def _exit_code(job: Job, seen: RunSeen) -> int | None:
    if job.attempt.exit_code is not None:
        return job.attempt.exit_code
    told = _EXIT_CODE.search(seen.message or "")
    return int(told[1]) if told else None


def _ended(job: Job, seen: RunSeen, at: datetime) -> Job:
    code = _exit_code(job, seen)
    if seen.phase is RunPhase.SUCCEEDED:
        job = job.with_attempt(replace(job.attempt, exit_code=code or 0))
        return finish(job, JobOutcome.SUCCEEDED, None, at)
    if code is not None:
        job = job.with_attempt(replace(job.attempt, exit_code=code))
    return finish(job, JobOutcome.FAILED, why_failed(job, seen, code, at), at)


def why_failed(job: Job, seen: RunSeen, code: int | None, at: datetime) -> Reason:
    """Why a run ended without success, from its phase, its exit code and what the fleet says."""
    said = (seen.message or "").strip()
    evidence = (Evidence(EvidenceSource.RAYJOB_STATUS, said[:2000], at, _rayjob(seen)),) if said else ()
    if seen.phase is RunPhase.INVALID:
        return reason(ReasonCode.INVALID_SPEC, f"KubeRay refuses the RayJob: {said}"[:2000], at, evidence=evidence)
    if seen.phase is RunPhase.STOPPED:
        return reason(ReasonCode.DELETED_OUTSIDE, "Somebody else asked Ray to stop the command.", at, evidence=evidence)
    if "runtime_env setup failed" in said or "RUNTIME_ENV_SETUP_FAILURE" in said:
        message = f"Ray could not set up the Capsule on a machine: {said}"
        return reason(ReasonCode.RUNTIME_ENV, message[:2000], at, evidence=evidence)
    if code is not None and code != 0:
        return user_code(code, at, evidence)
    return reason(ReasonCode.LAUNCH_FAILED, f"The run failed before the command: {said}"[:2000], at, evidence=evidence)


def user_code(code: int, at: datetime, evidence: tuple[Evidence, ...] = ()) -> Reason:
    """The reason of a command that failed by itself."""
    proof = Evidence(EvidenceSource.EXIT_CODE, str(code), at)
    message = f"The command ended with exit code {code}."
    advice = "Read the end of the driver's log, correct the code and submit it again."
    return reason(ReasonCode.USER_CODE, message, at, advice=advice, evidence=(proof, *evidence))


def _rayjob(seen: RunSeen) -> ObjectRef | None:
    view = seen.rayjob
    return ObjectRef("RayJob", view.name, view.namespace, view.uid) if view else None


def _absent(job: Job, at: datetime) -> Job:
    if job.attempt.run is None or job.state is JobState.LAUNCHING:
        return job
    message = f"Run {job.attempt.run.name} was deleted by somebody else."
    advice = "Retry the job when you know who removes its objects."
    return finish(job, JobOutcome.FAILED, reason(ReasonCode.DELETED_OUTSIDE, message, at, advice=advice), at)


def _head_lost(job: Job, seen: RunSeen, at: datetime) -> Reason | None:
    first, now = job.attempt.head_uid, _head(seen)
    if first is None or seen.phase in ENDED_PHASES or seen.phase is RunPhase.ABSENT or job.attempt.exited_at:
        return None
    if job.state is not JobState.RUNNING and now is None:
        return None
    if now and now.uid == first and not now.restarts and now.phase is not PodPhase.FAILED and not now.terminating:
        return None
    if now and now.uid == first and any(one.termination and one.termination.oom_killed for one in now.containers):
        return _out_of_memory(now, at)
    message = "The Ray head was lost, and with it the run: what runs in its place would start from the beginning."
    text = f"head uid {first}, now {now.uid if now else 'none'}, phase {now.phase if now else 'gone'}"
    evidence = (Evidence(EvidenceSource.POD_STATUS, text, at, ObjectRef("Pod", now.name if now else first)),)
    return reason(ReasonCode.HEAD_LOST, message, at, advice="Retry the job.", evidence=evidence)


def _out_of_memory(pod: PodView, at: datetime) -> Reason:
    message = f"Pod {pod.name} of pool {pod.pool} used more memory than its limit and was killed."
    evidence = (Evidence(EvidenceSource.CONTAINER_STATE, "OOMKilled", at, ObjectRef("Pod", pod.name, pod.namespace)),)
    advice = "Give the pool more memory, or make the code use less."
    return reason(ReasonCode.OOM_KILLED, message, at, advice=advice, evidence=evidence)
