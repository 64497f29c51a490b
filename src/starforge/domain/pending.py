"""What holds a run that waits, from what its Pods and Events say: conditions first, Events second."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, PodCondition, PodPhase, PodView
from starforge.domain.reason import Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, reason
from starforge.domain.timeline import Entry, KubernetesSeen

_WAITING: dict[str, tuple[ReasonCode, str, str]] = {
    "ErrImagePull": (ReasonCode.IMAGE_PULL, "can't pull", "Check the image's name and that the nodes may pull it."),
    "ImagePullBackOff": (ReasonCode.IMAGE_PULL, "can't pull", "Check the image's name and that the nodes may pull it."),
    "ErrImageNeverPull": (ReasonCode.IMAGE_PULL, "does not find", "Load the image onto the nodes."),
    "InvalidImageName": (ReasonCode.IMAGE_PULL, "can't read the name of", "Correct the image's name."),
    "CreateContainerConfigError": (
        ReasonCode.MISSING_REFERENCE,
        "misses a Secret, ConfigMap or key for",
        "Create what is missing, or correct the spec.",
    ),
}
_VOLUME_EVENTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})


def holds(pods: Sequence[PodView], events: Iterable[Entry], at: datetime, held: Reason | None = None) -> Reason:
    """The one reason to show for a run that waits: the worst that any of its Pods has, else that it is starting.

    `held` is what held it so far: Events are told once, so what they said counts until the Pod has come further.
    """
    found = [*_unscheduled(pods, at), *_containers(pods, at), *_volumes(events, at)]
    if held and _still_mounts(held, pods):
        found.append(held)
    return found[0] if found else _starting(pods, at)


def _still_mounts(held: Reason, pods: Sequence[PodView]) -> bool:
    of = {evidence.object.uid for evidence in held.evidence if evidence.object}
    waiting = {pod.uid for pod in pods if pod.phase is PodPhase.PENDING}
    return held.code is ReasonCode.VOLUME and not of.isdisjoint(waiting)


def _starting(pods: Sequence[PodView], at: datetime) -> Reason:
    running = sum(pod.ready for pod in pods)
    if not pods:
        return reason(ReasonCode.STARTING, "The cluster has not made any Pod yet.", at)
    return reason(ReasonCode.STARTING, f"{running} of {len(pods)} machines are ready; the others are starting.", at)


def _unscheduled(pods: Sequence[PodView], at: datetime) -> Iterator[Reason]:
    stuck = [(pod, condition) for pod in pods for condition in pod.conditions if _says_unschedulable(condition)]
    if not stuck:
        return
    pools = sorted({pod.pool or "?" for pod, _ in stuck})
    pod, condition = stuck[0]
    gpus = f" with {pod.gpus} GPUs each" if pod.gpus else ""
    message = (
        f"{len(stuck)} machines of pool {', '.join(pools)}{gpus} find no node: {condition.message or 'no node fits'}"
    )
    advice = "Wait for room, or ask for a series and size that a node of this fleet has."
    evidence = tuple(_condition_evidence(pod, condition, at) for pod, condition in stuck[:5])
    yield reason(ReasonCode.UNSCHEDULABLE, message, at, advice=advice, evidence=evidence)


def _says_unschedulable(condition: PodCondition) -> bool:
    return condition.type == "PodScheduled" and condition.status is False and condition.reason == "Unschedulable"


def _condition_evidence(pod: PodView, condition: PodCondition, at: datetime) -> Evidence:
    path = f"status.conditions[{condition.type}]"
    return Evidence(EvidenceSource.POD_CONDITION, (condition.message or "")[:2000], at, _ref(pod), path)


def _ref(pod: PodView) -> ObjectRef:
    return ObjectRef("Pod", pod.name, pod.namespace, pod.uid)


def _containers(pods: Sequence[PodView], at: datetime) -> Iterator[Reason]:
    for pod in pods:
        for container in pod.containers:
            if container.state is ContainerState.WAITING and container.waiting_reason in _WAITING:
                yield _waiting(pod, container, at)
            elif container.role is ContainerRole.INIT and _crashes(pod, container):
                yield _init_crash(pod, container, at)


def _waiting(pod: PodView, container: ContainerView, at: datetime) -> Reason:
    code, verb, advice = _WAITING[container.waiting_reason or ""]
    detail = container.waiting_message or container.waiting_reason or ""
    message = f"Pod {pod.name} {verb} image {container.image}: {detail}"
    return reason(code, message[:2000], at, advice=advice, evidence=(_container_evidence(pod, container, detail, at),))


def _container_evidence(pod: PodView, container: ContainerView, text: str, at: datetime) -> Evidence:
    path = f"status.containerStatuses[{container.name}].state"
    return Evidence(EvidenceSource.CONTAINER_STATE, text[:2000], at, _ref(pod), path)


def _crashes(pod: PodView, container: ContainerView) -> bool:
    ended = container.termination or container.previous
    return pod.phase in (PodPhase.PENDING, PodPhase.FAILED) and ended is not None and ended.exit_code != 0


def _init_crash(pod: PodView, container: ContainerView, at: datetime) -> Reason:
    ended = container.termination or container.previous
    code = ended.exit_code if ended else None
    message = f"Init container {container.name} of Pod {pod.name} ended with exit code {code}."
    advice = f"Read its log: pod/{pod.name}/{container.name}."
    return reason(
        ReasonCode.INIT_CRASH, message, at, advice=advice, evidence=(_container_evidence(pod, container, message, at),)
    )


def _volumes(events: Iterable[Entry], at: datetime) -> Iterator[Reason]:
    for entry in events:
        if isinstance(entry.detail, KubernetesSeen) and entry.detail.reason in _VOLUME_EVENTS:
            evidence = Evidence(EvidenceSource.KUBERNETES_EVENT, entry.message[:2000], at, entry.detail.object)
            message = f"A volume of {entry.detail.object.name} can't be mounted: {entry.message}"
            yield reason(ReasonCode.VOLUME, message[:2000], at, evidence=(evidence,))
