"""Whether the head of a run was lost, so that what runs in its place would be a second start."""

from collections.abc import Sequence
from datetime import datetime

from starforge.domain.job import Attempt, Job, JobState
from starforge.domain.losses import loss
from starforge.domain.observation import ENDED_PHASES, PodPhase, PodRole, PodView, RayJobView, RunPhase, RunSeen
from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, reason

_AFTER = "What would run in its place would start from the beginning, so the run was ended."
_RETRY = "Retry the job."


def head_of(pods: Sequence[PodView]) -> PodView | None:
    return next((pod for pod in pods if pod.role is PodRole.HEAD and not pod.gone_at), None)


def head_lost(before: Attempt, job: Job, seen: RunSeen, known: Sequence[PodView], at: datetime) -> Reason | None:
    """Why a run can't be its first start any more; None while it is.

    `before` is the attempt as it was before `seen`, `known` are the Pods of the picture before. What was never seen is
    not lost; and until the command may have started, a head may be replaced, if it did not fail.
    """
    first, now = job.attempt.head_uid, head_of(seen.pods)
    if first is None or seen.phase is RunPhase.ABSENT:
        return None
    last = now if now and now.uid == first else _last_seen(first, seen, known)
    if job.state is not JobState.RUNNING and seen.phase not in ENDED_PHASES:
        return _failed_before(now, at) or (None if now else _not_replaced(last, seen.rayjob, at))
    again = _submitted_again(before.rayjob, seen.rayjob) if before.started_at else None
    if again:
        evidence = (Evidence(EvidenceSource.RAYJOB_STATUS, again, at),)
        return reason(ReasonCode.HEAD_LOST, f"KubeRay submitted the run again. {_AFTER}", at, evidence=evidence)
    if seen.phase in ENDED_PHASES and not (now and _runs_again(first, now, seen.rayjob)):
        return None  # a cluster whose run has ended is taken away
    if now and now.uid == first and not now.ended_once and not now.terminating:
        return None
    return _lost(first, last, now, at)


def _last_seen(uid: str, seen: RunSeen, known: Sequence[PodView]) -> PodView | None:
    return next((pod for pod in (*seen.gone, *known) if pod.uid == uid), None)


def _failed_before(head: PodView | None, at: datetime) -> Reason | None:
    """A head that failed has no cure in waiting, though KubeRay makes another one: it is the user's to try again."""
    if head is None or not (head.phase is PodPhase.FAILED or any(main.termination for main in head.mains)):
        return None
    known = loss(head, at)
    if known:
        return known
    ends = [f"{main.name} ended with exit code {main.termination.exit_code}" for main in head.mains if main.termination]
    why = ": ".join(text for text in (head.reason, head.message, *ends) if text) or "its containers say why"
    evidence = (Evidence(EvidenceSource.POD_STATUS, why, at, head.ref),)
    message = f"{head.title} failed before its command was seen to start: {why}"
    return reason(ReasonCode.HEAD_LOST, message, at, advice=f"Read the logs of {head.name}.", evidence=evidence)


def _not_replaced(last: PodView | None, rayjob: RayJobView | None, at: datetime) -> Reason | None:
    """KubeRay replaces a head that is gone while it makes the cluster, and never once that was whole."""
    if last is None or rayjob is None or rayjob.deployment_status != "Running":
        return None
    known = _failed_before(last, at)
    if known:
        return known
    evidence = (Evidence(EvidenceSource.POD_STATUS, "the Pod is gone", at, last.ref),)
    message = f"{last.title} is gone before its command was seen to start, and KubeRay makes no other."
    return reason(ReasonCode.HEAD_LOST, message, at, advice=_RETRY, evidence=evidence)


def _submitted_again(old: RayJobView | None, new: RayJobView | None) -> str | None:
    if old is None or new is None:
        return None
    for what in ("submission_id", "ray_cluster"):
        was, now = getattr(old, what), getattr(new, what)
        if was and now and was != now:
            return f"{what} was {was} and is {now}"
    return None


def _runs_again(first: str, now: PodView, rayjob: RayJobView | None) -> bool:
    """Whether a run that has ended did so on another head than its first, or after that had ended once."""
    ended_at = rayjob.ended_at if rayjob else None
    if now.uid != first:
        return ended_at is None or now.created_at < ended_at
    return any(main.restarts for main in now.mains)


def _lost(first: str, last: PodView | None, now: PodView | None, at: datetime) -> Reason:
    known = loss(last, at) if last else None
    if known:
        message = f"{known.message} {_AFTER}"
        return reason(known.code, message, at, advice=known.advice, evidence=known.evidence)
    name = last.title if last else f"The head with uid {first}"
    text = f"head uid {first}, now {now.uid if now else 'none'}, phase {now.phase if now else 'gone'}"
    evidence = (Evidence(EvidenceSource.POD_STATUS, text, at, last.ref if last else None),)
    return reason(ReasonCode.HEAD_LOST, f"{name} {_how(first, now)}. {_AFTER}", at, advice=_RETRY, evidence=evidence)


def _how(first: str, now: PodView | None) -> str:
    if now is None:
        return "is gone"
    if now.uid != first:
        return f"was replaced by {now.name}"
    ends = [main.termination or main.previous for main in now.mains]
    code = next((f" with exit code {end.exit_code}" for end in ends if end), "")
    return f"was deleted while the command ran{code}" if now.terminating else f"ended while the command ran{code}"
