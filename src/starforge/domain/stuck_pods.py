"""What holds Pods that don't get going, by their conditions and the states of their containers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from starforge.domain.denials import A_REPEAT, AT_ONCE
from starforge.domain.failfast import KILLED, NETWORK_S, RESTARTS, pull_patience_s
from starforge.domain.losses import loss
from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, PodPhase, PodRole, PodView
from starforge.domain.reason import TEXT_MAX, Evidence, EvidenceSource, Reason, ReasonCode, reason
from starforge.domain.refusal import BY_EXIT_CODE
from starforge.domain.wire import RefusedWhy

_CAN_NOT_PULL = {
    "ErrImagePull": "can't pull",
    "ImagePullBackOff": "can't pull",
    "RegistryUnavailable": "can't pull",
    "SignatureValidationFailed": "can't pull",
    "ImageInspectError": "can't inspect",
    "ErrImageNeverPull": "is not allowed to pull and does not find",
    "InvalidImageName": "can't read the name of",
}
STORE_AWAY = "ObjectStoreUnavailable"
"""Why a container waits that tries to fetch the Capsule: a word of ours, of fleets that fetch it themselves."""
_BACK_OFF = re.compile(r'^Back-off pulling image "[^"]*": (?:ErrImagePull: )?')
_CAN_NOT_CREATE = frozenset({"CreateContainerError", "RunContainerError"})
_PULL_ADVICE = "Check the image's name and tag, and that the nodes may pull it; then submit the job again."
_STORE_ADVICE = "It goes on by itself as soon as it can be reached."
_CONFIG_ADVICE = "Create the Secret, ConfigMap or key, or correct the name in the spec; then submit the job again."


_NOT_FETCHED = {
    RefusedWhy.UNCLAIMED: (
        ReasonCode.OBJECT_STORE_UNAVAILABLE,
        "The Capsule could not be fetched, as the object store did not give it",
    ),
    RefusedWhy.CORRUPT: (ReasonCode.CAPSULE_INVALID, "The Capsule did not arrive as it was built"),
}


def stuck(pods: Sequence[PodView], at: datetime) -> Iterator[Reason]:
    """A reason for each trouble that a container has; `pods` may hold some that have just gone."""
    for pod in pods:
        known = loss(pod, at) if pod.phase is PodPhase.FAILED else None
        if known and known.code is ReasonCode.OOM_KILLED:
            yield replace(known, patience_s=AT_ONCE)  # the next Pod gets no more memory
        for container in pod.containers:
            yield from _waiting(pod, container, pods, at)
            if container.role is ContainerRole.INIT and _crashed(pod, container):
                yield _init_crash(pod, container, at)


def _waiting(pod: PodView, container: ContainerView, pods: Sequence[PodView], at: datetime) -> Iterator[Reason]:
    why = container.waiting_reason
    if container.state is not ContainerState.WAITING or why is None or pod.terminating:
        return
    if why in _CAN_NOT_PULL:
        yield _no_image(pod, container, _others(pods, container.image), at)
    elif why == STORE_AWAY:
        said = container.waiting_message or "The object store can't be reached."
        proof = (_evidence(pod, container, said, at),)
        yield reason(ReasonCode.OBJECT_STORE_UNAVAILABLE, said, at, advice=_STORE_ADVICE, evidence=proof)
    elif why == "CreateContainerConfigError":
        said = container.waiting_message or "a Secret, ConfigMap or key that it needs is missing"
        message = f"Container {container.name} of {pod.title} can't be configured: {said}."
        proof = (_evidence(pod, container, said, at),)
        yield reason(
            ReasonCode.MISSING_REFERENCE, message, at, advice=_CONFIG_ADVICE, evidence=proof, patience_s=A_REPEAT
        )
    elif why in _CAN_NOT_CREATE:
        said = container.waiting_message or why
        message = f"Container {container.name} of {pod.title} can't be started: {said}."
        proof = (_evidence(pod, container, said, at),)
        yield reason(ReasonCode.LAUNCH_FAILED, message, at, evidence=proof, patience_s=NETWORK_S)


def _no_image(pod: PodView, container: ContainerView, others: int, at: datetime) -> Reason:
    waiting = container.waiting_reason or ""
    said = container.waiting_message or waiting
    why = _BACK_OFF.sub("", said)
    also = f", and {_count(others, 'other Pod')} can't either" if others else ""
    message = f"{pod.title} {_CAN_NOT_PULL[waiting]} image {container.image}{also}: {why}"
    return reason(
        ReasonCode.IMAGE_PULL,
        message,
        at,
        advice=_PULL_ADVICE,
        evidence=(_evidence(pod, container, said, at),),
        patience_s=pull_patience_s(waiting, said),
    )


def _others(pods: Sequence[PodView], image: str) -> int:
    waits = [pod for pod in pods if any(c.image == image and c.waiting_reason in _CAN_NOT_PULL for c in pod.containers)]
    return len(waits) - 1


def _crashed(pod: PodView, container: ContainerView) -> bool:
    ended = container.termination or container.previous
    if ended is None or ended.exit_code == 0 or container.state is ContainerState.RUNNING:
        return False
    if pod.terminating and (ended.exit_code > KILLED or pod.phase is not PodPhase.FAILED):
        return False  # whoever deletes a Pod kills what runs in it
    return pod.phase in (PodPhase.PENDING, PodPhase.FAILED) and loss(pod, pod.observed_at) is None


def _init_crash(pod: PodView, container: ContainerView, at: datetime) -> Reason:
    """A Pod that failed does not start its containers again, so what it tried itself is all that is tried."""
    ended = container.termination or container.previous
    code = ended.exit_code if ended else None
    times = f" {_count(container.restarts + 1, 'time')}" if container.restarts else ""
    said = (ended.message if ended else None) or f"exit code {code}, {container.restarts} restarts"
    proof = (_evidence(pod, container, said, at),)
    final = pod.phase is PodPhase.FAILED or container.restarts >= RESTARTS
    patience_s = AT_ONCE if final else None
    refused = BY_EXIT_CODE.get(code) if code is not None else None
    if refused in _NOT_FETCHED:
        why, message = _NOT_FETCHED[refused]
        last = said.strip().splitlines()[-1]
        text = f"{message}{times}: init container {container.name} of {pod.title} says: {last}"
        return reason(why, text, at, evidence=proof, patience_s=patience_s)
    message = f"Init container {container.name} of {pod.title} ended{times} with exit code {code}."
    advice = f"Read its log: pod/{pod.name}/{container.name}."
    return reason(ReasonCode.INIT_CRASH, message, at, advice=advice, evidence=proof, patience_s=patience_s)


def looping(pods: Iterable[PodView], at: datetime) -> Iterator[Reason]:
    """That Ray ends on every machine that KubeRay makes in place of the last; `pods` are all that there ever were."""
    ends: dict[str | None, dict[str, PodView]] = {}
    for pod in pods:
        failed = [main.termination for main in pod.mains if main.termination and main.termination.exit_code]
        if pod.role is PodRole.WORKER and failed and loss(pod, at) is None:
            ends.setdefault(pod.pool, {})[pod.uid] = pod
    for pool, failed_pods in ends.items():
        if len(failed_pods) >= RESTARTS:
            yield _loop(pool, list(failed_pods.values()), at)


def _loop(pool: str | None, pods: Sequence[PodView], at: datetime) -> Reason:
    last = pods[-1]
    main = next(main for main in last.mains if main.termination)
    code = main.termination.exit_code if main.termination else None
    message = f"Ray ended on {len(pods)} machines of pool {pool} before the command was started, with exit code {code}."
    advice = f"Read its log: pod/{last.name}/{main.name}. The image may lack Ray, or another version of it."
    evidence = tuple(_evidence(pod, pod.mains[0], f"exit code {code}", at) for pod in pods[-RESTARTS:])
    return reason(ReasonCode.LAUNCH_FAILED, message, at, advice=advice, evidence=evidence, patience_s=AT_ONCE)


def _evidence(pod: PodView, container: ContainerView, text: str, at: datetime) -> Evidence:
    kind = "initContainerStatuses" if container.role is ContainerRole.INIT else "containerStatuses"
    return Evidence(
        EvidenceSource.CONTAINER_STATE, text[:TEXT_MAX], at, pod.ref, f"status.{kind}[{container.name}].state"
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
