"""From what is seen of a run to the next state of its job: pure, and only ever on something seen."""

import re
from dataclasses import replace
from datetime import datetime

from starforge.domain.job import Attempt, Job, JobOutcome, JobState, RunIdentity, advance, conclude, finish
from starforge.domain.names import run_name
from starforge.domain.observation import ENDED_PHASES, ContainerRole, PodPhase, PodRole, PodView, RunPhase, RunSeen
from starforge.domain.reason import Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, keep_since, reason
from starforge.domain.refusal import BY_EXIT_CODE, refusal
from starforge.domain.wire import RefusedWhy

_EXIT_CODE = re.compile(r"exit code:? (\d+)")


def judge(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime) -> Job:
    """The job after `seen`. `waits_for` is what holds the run if it waits (domain/pending.py)."""
    job = job.with_attempt(_noticed(job, seen))
    if job.decided or job.state not in (JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING):
        return job
    if job.attempt.ending and (seen.phase in ENDED_PHASES or seen.phase is RunPhase.ABSENT):
        return conclude(job, JobOutcome.FAILED, None, at)
    lost = _head_lost(job, seen, waits_for, at)
    if lost:
        return conclude(_launched(job, at), JobOutcome.FAILED, lost, at)
    return _by_phase(job, seen, waits_for, at)


def _by_phase(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime) -> Job:
    if seen.phase in ENDED_PHASES:
        return _ended(advance(job, JobState.RUNNING, at) if _ran(job, seen) else _launched(job, at), seen, at)
    if seen.phase is RunPhase.ABSENT:
        return _absent(job, at)
    if seen.phase is RunPhase.RUNNING:
        return advance(job, JobState.RUNNING, at)
    return hold(_launched(job, at), waits_for)


def hold(job: Job, waits_for: Reason | None) -> Job:
    """The job with what holds it, if it waits for its machines."""
    if waits_for is None or job.state is not JobState.PENDING:
        return job
    return job.with_attempt(replace(job.attempt, reason=keep_since(waits_for, job.attempt.reason)))


def _noticed(job: Job, seen: RunSeen) -> Attempt:
    attempt, head = job.attempt, _head(seen)
    first = attempt.head_uid
    if head and (first is None or job.state in (JobState.LAUNCHING, JobState.PENDING)):
        first = head.uid  # until something was started on it, a head may be replaced
    return replace(
        attempt,
        run=_identity(job, seen),
        observed_at=seen.at,
        rayjob=seen.rayjob or attempt.rayjob,
        head_uid=first,
    )


def _identity(job: Job, seen: RunSeen) -> RunIdentity | None:
    """What the run is called, also when whoever created it could not write it down."""
    known = job.attempt.run
    if known is None and seen.phase is not RunPhase.ABSENT:
        namespace = seen.rayjob.namespace if seen.rayjob else None
        return RunIdentity(run_name(job.spec.name, job.run), namespace, seen.uid)
    return replace(known, uid=seen.uid) if known and seen.uid and known.uid is None else known


def _head(seen: RunSeen) -> PodView | None:
    return next((pod for pod in seen.pods if pod.role is PodRole.HEAD and not pod.gone_at), None)


def _launched(job: Job, at: datetime) -> Job:
    return advance(job, JobState.PENDING, at)


def _ran(job: Job, seen: RunSeen) -> bool:
    return seen.phase is RunPhase.SUCCEEDED or (_exit_code(job, seen) is not None and not _refused(job, seen))


def _exit_code(job: Job, seen: RunSeen) -> int | None:
    if job.attempt.exit_code is not None:
        return job.attempt.exit_code
    told = _EXIT_CODE.search(seen.message or "")
    return int(told[1]) if told else None


def _refused(job: Job, seen: RunSeen) -> RefusedWhy | None:
    """Whether it was the runner, and not the command, that ended with the code that Ray tells."""
    return None if job.attempt.exited_at else BY_EXIT_CODE.get(_exit_code(job, seen) or 0)


def _ended(job: Job, seen: RunSeen, at: datetime) -> Job:
    code = _exit_code(job, seen)
    if seen.phase is RunPhase.SUCCEEDED:
        job = job.with_attempt(replace(job.attempt, exit_code=code or 0))
        return finish(job, JobOutcome.SUCCEEDED, None, at)
    refused = _refused(job, seen)
    if refused:
        why = refusal(refused, (seen.message or "").strip(), EvidenceSource.RAYJOB_STATUS, at)
        return finish(job, JobOutcome.FAILED, why, at)
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
    if job.attempt.started_at:
        ended = "ran" if code is None else "had ended with exit code 0"
        message = f"The run was lost when the command {ended}: {said or 'nothing says why'}"
        return reason(ReasonCode.HEAD_LOST, message[:2000], at, advice="Retry the job.", evidence=evidence)
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


def _head_lost(job: Job, seen: RunSeen, waits_for: Reason | None, at: datetime) -> Reason | None:
    first, now = job.attempt.head_uid, _head(seen)
    if first is None or seen.phase in ENDED_PHASES or seen.phase is RunPhase.ABSENT or job.attempt.exited_at:
        return None
    if now and now.uid == first and any(one.termination and one.termination.oom_killed for one in now.containers):
        return _out_of_memory(now, at)
    if job.state is not JobState.RUNNING:
        if now is None or now.phase is not PodPhase.FAILED:
            return None
        known = waits_for and waits_for.code in (ReasonCode.INIT_CRASH, ReasonCode.IMAGE_PULL)
        return waits_for if known else _head_failed(now, at)
    if now and now.uid == first and not _ended_once(now) and not now.terminating:
        return None
    message = "The Ray head was lost, and with it the run: what runs in its place would start from the beginning."
    text = f"head uid {first}, now {now.uid if now else 'none'}, phase {now.phase if now else 'gone'}"
    evidence = (Evidence(EvidenceSource.POD_STATUS, text, at, ObjectRef("Pod", now.name if now else first)),)
    return reason(ReasonCode.HEAD_LOST, message, at, advice="Retry the job.", evidence=evidence)


def _out_of_memory(pod: PodView, at: datetime) -> Reason:
    message = f"Pod {pod.name} of pool {pod.pool} used more memory than its limit and was killed."
    evidence = (Evidence(EvidenceSource.CONTAINER_STATE, "OOMKilled", at, ObjectRef("Pod", pod.name, pod.namespace)),)
    advice = "Give the pool more memory, or make the code use less."
    return reason(ReasonCode.OOM_KILLED, message, at, advice=advice, evidence=evidence)


def _head_failed(head: PodView, at: datetime) -> Reason:
    why = ": ".join(text for text in (head.reason, head.message) if text) or "its containers say why"
    message = f"The Ray head failed before the command was started: {why}"
    evidence = (Evidence(EvidenceSource.POD_STATUS, why[:2000], at, ObjectRef("Pod", head.name, head.namespace)),)
    return reason(ReasonCode.HEAD_LOST, message[:2000], at, advice=f"Read the logs of {head.name}.", evidence=evidence)


def _ended_once(head: PodView) -> bool:
    """Whether Ray's own container ended; a sidecar may restart as it likes."""
    mains = [container for container in head.containers if container.role is ContainerRole.MAIN]
    restarted = any(main.restarts for main in mains) if mains else head.restarts > 0
    return restarted or head.phase in (PodPhase.FAILED, PodPhase.SUCCEEDED)
