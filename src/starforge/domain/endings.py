"""Why a run ended: by its command, by the runner, by Ray or by the fleet."""

import re
from dataclasses import replace
from datetime import datetime

from starforge.domain.failfast import KILLED
from starforge.domain.job import Attempt, Job, JobOutcome, finish
from starforge.domain.losses import explained
from starforge.domain.observation import RunPhase, RunSeen
from starforge.domain.reason import TEXT_MAX, Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, reason
from starforge.domain.refusal import BY_EXIT_CODE, refusal

_EXIT_CODE = re.compile(r"exit code:? (\d+)")
_STORE_AWAY = re.compile(
    r"Max retries exceeded|Connect(?:ion|Timeout)?Error|ConnectTimeout|ReadTimeout|Connection (?:refused|reset|aborted)"
    r"|timed out|\b(?:429 Client|5\d\d Server) Error"
)
"""What Ray says of a working_dir that it could not download, in words of its HTTP client."""
_TAKEN_FOR = frozenset(
    {ReasonCode.HEAD_LOST, ReasonCode.OBJECT_STORE_UNAVAILABLE, ReasonCode.CAPSULE_INVALID, ReasonCode.LAUNCH_FAILED}
)


def ran(job: Job, seen: RunSeen) -> bool:
    """Whether a run that has ended is known to have started its command."""
    if seen.phase is RunPhase.SUCCEEDED or job.attempt.exited_at:
        return True
    code = _code_told(seen)
    return code is not None and code not in BY_EXIT_CODE


def ended(job: Job, seen: RunSeen, at: datetime) -> Job:
    """The job whose run has ended, as the fleet tells; the exit line of the runner has the code."""
    code = _code_told(seen)
    if seen.phase is RunPhase.SUCCEEDED:
        job = job.with_attempt(replace(job.attempt, exit_code=job.attempt.exit_code or code or 0))
        return finish(job, JobOutcome.SUCCEEDED, None, at)
    again = code in BY_EXIT_CODE and code != job.attempt.exit_code  # a second start, which the runner refused
    if again and ended_itself(job.attempt):
        return exited(job, at)
    if job.attempt.exited_at and not again:
        code = job.attempt.exit_code
    elif code in BY_EXIT_CODE:
        why = refusal(BY_EXIT_CODE[code], _said(seen), EvidenceSource.RAYJOB_STATUS, at)
        return finish(job, JobOutcome.FAILED, why, at)
    if code is not None:
        job = job.with_attempt(replace(job.attempt, exit_code=code))
    return finish(job, JobOutcome.FAILED, why_failed(job, seen, code, at), at)


def ended_itself(attempt: Attempt) -> bool:
    """Whether the runner's exit line says that the command ended, and not that something killed it."""
    return attempt.exited_at is not None and (attempt.exit_code or 0) <= KILLED


def exited(job: Job, at: datetime) -> Job:
    """The job as the runner's exit line says that its command ended."""
    code = job.attempt.exit_code or 0
    if code == 0:
        return finish(job, JobOutcome.SUCCEEDED, None, at)
    return finish(job, JobOutcome.FAILED, explained(job.attempt, user_code(code, at), at), at)


def corrected(job: Job, at: datetime) -> Job:
    """The job with its true reason, if the exit line came only after the fleet had said that the run failed.

    The code that Ray tells may be one that the runner keeps for itself; or it tells none.
    """
    attempt, why = job.attempt, job.attempt.reason
    late = attempt.outcome is JobOutcome.FAILED and attempt.exited_at is not None and bool(attempt.exit_code)
    if not late or why is None or why.code not in _TAKEN_FOR or not why.evidence:
        return job
    if why.evidence[0].source is not EvidenceSource.RAYJOB_STATUS:
        return job
    true = explained(attempt, user_code(attempt.exit_code or 0, at, why.evidence), at)
    return job.with_attempt(replace(attempt, reason=true))


def _code_told(seen: RunSeen) -> int | None:
    told = _EXIT_CODE.search(seen.message or "")
    return int(told[1]) if told else None


def _said(seen: RunSeen) -> str:
    return (seen.message or "").strip()


def why_failed(job: Job, seen: RunSeen, code: int | None, at: datetime) -> Reason:
    """Why a run ended without success, from its phase, its exit code and what the fleet says."""
    said = _said(seen)
    proof = Evidence(EvidenceSource.RAYJOB_STATUS, said[:TEXT_MAX] or f"{seen.phase}", at, _rayjob(seen))
    if seen.phase is RunPhase.INVALID:
        return reason(ReasonCode.INVALID_SPEC, f"KubeRay refuses the RayJob: {said}", at, evidence=(proof,))
    if seen.phase is RunPhase.STOPPED:
        message = "Somebody else asked Ray to stop the command."
        return reason(ReasonCode.DELETED_OUTSIDE, message, at, advice="Retry the job.", evidence=(proof,))
    if "runtime_env setup failed" in said or "RUNTIME_ENV_SETUP_FAILURE" in said:
        return _not_set_up(said, proof, at)
    if code is not None and code != 0:
        return explained(job.attempt, user_code(code, at, (proof,)), at)
    if job.attempt.started_at:
        how = "ran" if code is None else "had ended with exit code 0"
        message = f"The run was lost when the command {how}: {said or 'nothing says why'}"
        why = reason(ReasonCode.HEAD_LOST, message, at, advice="Retry the job.", evidence=(proof,))
        return explained(job.attempt, why, at)
    return reason(ReasonCode.LAUNCH_FAILED, f"The run failed before the command: {said}", at, evidence=(proof,))


def _not_set_up(said: str, proof: Evidence, at: datetime) -> Reason:
    if _STORE_AWAY.search(said):
        message = f"Ray could not fetch the Capsule, as the object store did not give it: {said}"
        return reason(ReasonCode.OBJECT_STORE_UNAVAILABLE, message, at, advice="Retry the job.", evidence=(proof,))
    message = f"Ray could not set up the Capsule on a machine: {said}"
    return reason(ReasonCode.RUNTIME_ENV, message, at, evidence=(proof,))


def user_code(code: int, at: datetime, evidence: tuple[Evidence, ...] = ()) -> Reason:
    """The reason of a command that failed by itself."""
    proof = Evidence(EvidenceSource.EXIT_CODE, str(code), at)
    message = f"The command ended with exit code {code}."
    advice = "Read the end of the driver's log, correct the code and submit it again."
    return reason(ReasonCode.USER_CODE, message, at, advice=advice, evidence=(proof, *evidence))


def _rayjob(seen: RunSeen) -> ObjectRef | None:
    view = seen.rayjob
    return ObjectRef("RayJob", view.name, view.namespace, view.uid) if view else None
