"""How a Pod was lost, by what Kubernetes wrote into its status, and what the loss of a worker explains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from starforge.domain.job import Attempt
from starforge.domain.observation import ENDED_PHASES, ContainerRole, PodPhase, PodRole, PodView, RunSeen
from starforge.domain.reason import TEXT_MAX, Evidence, EvidenceSource, Reason, ReasonCode, reason

EXPLAINS = timedelta(minutes=30)
"""For so long after a worker was lost, a command that fails is taken to have failed by it: as long as NCCL waits."""
_ADVICE = {ReasonCode.OOM_KILLED: "Give the pool more memory, or make the code use less."}
_RETRY = "Retry the job."

# Words of kubelet, the scheduler and the controllers: status.reason, and reasons of the condition DisruptionTarget.
_BY_STATUS = {
    "Evicted": ReasonCode.EVICTED,
    "Preempting": ReasonCode.PREEMPTED,
    "NodeLost": ReasonCode.NODE_LOST,
    "NodeShutdown": ReasonCode.NODE_LOST,
    "Terminated": ReasonCode.NODE_LOST,
}
_BY_DISRUPTION = {
    "PreemptionByScheduler": ReasonCode.PREEMPTED,
    "DeletionByTaintManager": ReasonCode.NODE_LOST,
    "DeletionByPodGC": ReasonCode.NODE_LOST,
    "EvictionByEvictionAPI": ReasonCode.EVICTED,
    "TerminationByKubelet": ReasonCode.EVICTED,
}
_NODE_GONE = frozenset({"NodeLost", "NodeStatusUnknown"})
_SENTENCES = {
    ReasonCode.OOM_KILLED: "used more memory than its limit and was killed on node",
    ReasonCode.EVICTED: "was evicted from node",
    ReasonCode.PREEMPTED: "had to make room for a Pod of higher priority on node",
    ReasonCode.NODE_LOST: "was lost with node",
}


@dataclass(frozen=True)
class _Sign:
    code: ReasonCode
    source: EvidenceSource
    text: str
    path: str


def loss(pod: PodView, at: datetime) -> Reason | None:
    """Why Kubernetes took a Pod away; None if nothing says that it did, whatever else became of it."""
    sign = next(_signs(pod), None)
    if sign is None:
        return None
    message = f"{pod.title} {_SENTENCES[sign.code]} {pod.node_name or '(not known)'}: {sign.text}"
    evidence = (Evidence(sign.source, sign.text[:TEXT_MAX], at, pod.ref, sign.path),)
    return reason(sign.code, message, at, advice=_ADVICE.get(sign.code, _RETRY), evidence=evidence)


def _signs(pod: PodView) -> Iterator[_Sign]:
    """Strongest first: what ended a container says more than what was planned with its Pod."""
    for container in pod.containers:
        ended = container.termination or container.previous
        path = f"status.containerStatuses[{container.name}].state"
        if ended and ended.oom_killed and container.role is not ContainerRole.SIDECAR:
            yield _Sign(ReasonCode.OOM_KILLED, EvidenceSource.CONTAINER_STATE, "OOMKilled", path)
    if pod.reason == "NodeLost" or (pod.reason in _BY_STATUS and pod.phase is PodPhase.FAILED):
        text = _joined(pod.reason, pod.message)
        yield _Sign(_BY_STATUS[pod.reason], EvidenceSource.POD_STATUS, text, "status.reason")
    yield from _conditions(pod)
    for container in pod.containers:
        ended = container.termination
        path = f"status.containerStatuses[{container.name}].state"
        if ended and ended.reason == "ContainerStatusUnknown":
            text = _joined(ended.reason, ended.message)
            yield _Sign(ReasonCode.NODE_LOST, EvidenceSource.CONTAINER_STATE, text, path)


def _conditions(pod: PodView) -> Iterator[_Sign]:
    for each in pod.conditions:
        text, path = _joined(each.reason, each.message), f"status.conditions[{each.type}]"
        if each.type == "DisruptionTarget" and each.status and each.reason in _BY_DISRUPTION:
            yield _Sign(_BY_DISRUPTION[each.reason], EvidenceSource.POD_CONDITION, text, path)
        if each.type == "Ready" and each.status is not True and each.reason in _NODE_GONE:
            yield _Sign(ReasonCode.NODE_LOST, EvidenceSource.POD_CONDITION, text, path)


def _joined(*parts: str | None) -> str:
    return ": ".join(part.strip() for part in parts if part)


def lost_worker(seen: RunSeen, known: Sequence[PodView], at: datetime) -> Reason | None:
    """Why a worker that had run is not there any more, or won't be for long; `known` are the Pods seen before.

    Once a run has ended its Pods go by themselves: then only what is written into their status counts, of its head too.
    """
    there = {pod.uid for pod in seen.pods}
    last = {pod.uid: pod for pod in (*known, *seen.gone)}
    gone = [pod for pod in last.values() if pod.uid not in there and pod.gone_at is None]
    leaving = [(pod, pod.terminating) for pod in seen.pods if pod.terminating or pod.ended_once]
    for pod, deleted in [*leaving, *((pod, True) for pod in gone)]:
        if pod.role is PodRole.WORKER and (pod.started_at or pod.phase is PodPhase.RUNNING):
            why = loss(pod, at) or (_deleted(pod, at) if deleted and seen.phase not in ENDED_PHASES else None)
            if why:
                return why
    return next((why for pod, _ in leaving if (why := loss(pod, at))), None) if seen.phase in ENDED_PHASES else None


def _deleted(pod: PodView, at: datetime) -> Reason:
    evidence = (Evidence(EvidenceSource.POD_STATUS, f"deleted, phase {pod.phase}", at, pod.ref),)
    message = f"{pod.title} was deleted by somebody else."
    return reason(ReasonCode.EVICTED, message, at, advice=_RETRY, evidence=evidence)


def out_of_memory(code: int, at: datetime) -> Reason:
    """Why a command failed one of whose processes the kernel had killed; the container itself may have gone on."""
    message = "A process of the command was killed, as its container had used all the memory that it may have."
    proof = (Evidence(EvidenceSource.EXIT_CODE, str(code), at),)
    return reason(ReasonCode.OOM_KILLED, message, at, advice=_ADVICE[ReasonCode.OOM_KILLED], evidence=proof)


def explained(attempt: Attempt, why: Reason, at: datetime) -> Reason:
    """`why` a command failed, or the loss of a worker that it followed: then that comes first, and `why` proves it."""
    lost = attempt.lost
    if lost is None or at - lost.since > EXPLAINS:
        return why
    message = f"{lost.message} After that: {why.message}"[:TEXT_MAX]
    return replace(lost, message=message, since=at, evidence=(*lost.evidence, *why.evidence)[:10])
