"""From what is seen of a playground's Pod to its next state: pure, and only ever on something seen."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from starforge.domain.failfast import spent
from starforge.domain.losses import loss
from starforge.domain.observation import ContainerState, EventSeen, PodPhase, PodView, RunPhase, RunSeen
from starforge.domain.pending import holds
from starforge.domain.playground import Playground, PlaygroundState, become_ready, end
from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, keep_since, reason
from starforge.domain.silent_nodes import silent

_LOG = "The last lines of its log say why."
_ANOTHER = "Start another playground."
_ENDED = (PodPhase.SUCCEEDED, PodPhase.FAILED)


def judge_playground(
    playground: Playground, seen: RunSeen, waits_for: Reason | None, at: datetime, known: Sequence[PodView] = ()
) -> Playground:
    """The playground after `seen`; `waits_for` is what holds it if it waits, `known` are its Pods before."""
    after = replace(playground, observed_at=seen.at)
    if after.ended:
        return after
    pod = seen.pods[-1] if seen.pods else None
    if pod is None:
        gone = after.run is not None and seen.phase is RunPhase.ABSENT
        return _gone(after, seen, known, at) if gone else wait(after, waits_for, at)
    why = _broken(pod, at)
    if why:
        return end(after, PlaygroundState.FAILED, why, at)
    if after.answers:
        quiet = next(silent(seen.pods, at), None)
        return replace(after, reason=keep_since(quiet, after.reason) if quiet else None)
    return become_ready(after, at) if pod.ready else wait(after, waits_for, at)


def wait(playground: Playground, waits_for: Reason | None, at: datetime) -> Playground:
    """The playground with what holds it; FAILED if that has held it for as long as it may."""
    if waits_for is None or playground.state is not PlaygroundState.STARTING:
        return playground
    after = replace(playground, reason=keep_since(waits_for, playground.reason))
    why = spent(after.as_job(), at)
    return end(after, PlaygroundState.FAILED, why, at) if why else after


def waits_for(
    playground: Playground, seen: RunSeen | None, known: Sequence[PodView], events: Sequence[EventSeen], at: datetime
) -> Reason | None:
    """What holds a playground that starts: the same as would hold a job, or how far its server is."""
    if playground.state is not PlaygroundState.STARTING:
        return None
    why = holds(playground.as_job(), seen, known, events, at)
    if why.code is not ReasonCode.STARTING:
        return why
    pods = seen.pods if seen else [pod for pod in known if pod.gone_at is None]
    return reason(ReasonCode.STARTING, _how_far(pods), at)


def _how_far(pods: Sequence[PodView]) -> str:
    if not pods:
        return "Its Pod is being created."
    runs = any(main.state is ContainerState.RUNNING for main in pods[-1].mains)
    return "The server runs and loads the model." if runs else "Its Pod is starting."


def _gone(playground: Playground, seen: RunSeen, known: Sequence[PodView], at: datetime) -> Playground:
    last = next(reversed([*known, *seen.gone]), None)
    lost = loss(last, at) if last else None
    message = f"Pod {playground.pod_name} was deleted by somebody else."
    why = lost or reason(ReasonCode.DELETED_OUTSIDE, message, at)
    return end(playground, PlaygroundState.FAILED, replace(why, advice=_ANOTHER), at)


def _broken(pod: PodView, at: datetime) -> Reason | None:
    """Why a Pod does not serve any more and never will; None if it may."""
    main = next((main for main in pod.mains if main.termination), None)
    ended = main.termination if main else None
    if pod.phase not in _ENDED and ended is None and not pod.terminating:
        return None
    lost = loss(pod, at)
    if lost:
        return replace(lost, advice=_ANOTHER)
    if ended is None and pod.terminating:
        proof = (Evidence(EvidenceSource.POD_STATUS, f"deleted, phase {pod.phase}", at, pod.ref),)
        message = f"{pod.title} is being deleted by somebody else."
        return reason(ReasonCode.DELETED_OUTSIDE, message, at, advice=_ANOTHER, evidence=proof)
    code = ended.exit_code if ended else None
    said = (
        (ended and ended.message) or pod.message or (f"exit code {code}" if code is not None else f"phase {pod.phase}")
    )
    proof = (Evidence(EvidenceSource.CONTAINER_STATE, said[:2000], at, pod.ref),)
    how = f" with exit code {code}" if code is not None else ""
    return reason(ReasonCode.SERVER_FAILED, f"The server ended{how}.", at, advice=_LOG, evidence=proof)
