"""A Pod as JSON, as a PodView."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count

from starforge.adapters.kube.labels import ANNOTATION_FIRST_MACHINE, KubeObject
from starforge.adapters.kube.rendering.resources import GPU
from starforge.adapters.kube.views.containers import containers
from starforge.adapters.kube.views.times import created, deletion_requested, parse_time
from starforge.domain.names import LABEL_POOL
from starforge.domain.observation import (
    ContainerRole,
    ContainerView,
    PodCondition,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
)
from starforge.domain.redaction import redact_or_none

NODE_TYPE = "ray.io/node-type"
_STATUS = {"True": True, "False": False}
_CONDITIONS_MAX = 20


def role_of(pod: KubeObject) -> PodRole:
    node_type = (pod["metadata"].get("labels") or {}).get(NODE_TYPE)
    return {"head": PodRole.HEAD, "worker": PodRole.WORKER}.get(node_type or "", PodRole.SUBMITTER)


def pool_of(pod: KubeObject) -> str | None:
    pool: str | None = (pod["metadata"].get("labels") or {}).get(LABEL_POOL)
    return pool


def pod_views(pods: Iterable[KubeObject], machines: Mapping[str, int], observed_at: datetime) -> tuple[PodView, ...]:
    """Views in the order in which the Pods were created."""
    return tuple(_view(pod, machines.get(pod["metadata"]["uid"]), observed_at) for pod in by_age(pods))


def by_age(pods: Iterable[KubeObject]) -> list[KubeObject]:
    return sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))


def assign_machines(pods: Iterable[KubeObject], known: Mapping[str, int]) -> dict[str, int]:
    """Number of each Pod's machine within its pool, by uid: the head is 0, workers follow by age.

    A Pod keeps the number that it has in `known`; one that replaces another gets the lowest that is free.
    """
    machines: dict[str, int] = {}
    pods = by_age(pods)
    for pool in sorted({pool for pod in pods if (pool := pool_of(pod)) is not None}):
        machines |= _assign([pod for pod in pods if pool_of(pod) == pool], known)
    return machines


def _assign(pods: Sequence[KubeObject], known: Mapping[str, int]) -> dict[str, int]:
    heads = {pod["metadata"]["uid"]: 0 for pod in pods if role_of(pod) is PodRole.HEAD}
    workers = [pod["metadata"]["uid"] for pod in pods if role_of(pod) is PodRole.WORKER]
    numbers = heads | {uid: known[uid] for uid in workers if uid in known}
    taken = set(numbers.values())
    first = max((_first_machine(pod) for pod in pods), default=0)
    free = (number for number in count(first) if number not in taken)
    return numbers | {uid: next(free) for uid in workers if uid not in known}


def _first_machine(pod: KubeObject) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(ANNOTATION_FIRST_MACHINE, 0))


def _view(pod: KubeObject, machine: int | None, observed_at: datetime) -> PodView:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    inside = containers(pod)
    conditions = tuple(condition_view(each) for each in (status.get("conditions") or [])[:_CONDITIONS_MAX])
    return PodView(
        uid=metadata["uid"],
        name=metadata["name"],
        namespace=metadata.get("namespace"),
        runtime=PodRuntime.KUBERNETES,
        role=role_of(pod),
        pool=pool_of(pod),
        machine=machine,
        phase=_phase(status),
        created_at=created(metadata),
        observed_at=observed_at,
        ready=any(each.type == "Ready" and each.status is True for each in conditions),
        terminating="deletionTimestamp" in metadata,
        reason=redact_or_none(status.get("reason")),
        message=redact_or_none(status.get("message")),
        node_name=spec.get("nodeName"),
        gpus=_gpus(spec),
        restarts=sum(each.restarts for each in inside),
        conditions=conditions,
        containers=inside,
        scheduled_at=_scheduled(conditions),
        started_at=_first_start(inside),
        finished_at=_last_end(inside, _phase(status)),
        deletion_requested_at=deletion_requested(metadata),
    )


def _phase(status: KubeObject) -> PodPhase:
    phase = str(status.get("phase") or "Pending").upper()
    return PodPhase(phase) if phase in PodPhase.__members__ else PodPhase.UNKNOWN


def condition_view(condition: KubeObject) -> PodCondition:
    return PodCondition(
        condition["type"],
        _STATUS.get(condition["status"]),
        redact_or_none(condition.get("reason")),
        redact_or_none(condition.get("message")),
        parse_time(condition.get("lastTransitionTime")),
    )


def _gpus(spec: KubeObject) -> int:
    wanted = [(each.get("resources") or {}).get("requests") or {} for each in spec.get("containers") or []]
    return sum(int(each.get(GPU, 0)) for each in wanted)


def _scheduled(conditions: Sequence[PodCondition]) -> datetime | None:
    for each in conditions:
        if each.type == "PodScheduled" and each.status:
            return each.changed_at
    return None


def _first_start(inside: Sequence[ContainerView]) -> datetime | None:
    starts = [each.started_at or (each.termination and each.termination.started_at) for each in inside]
    return min((start for start in starts if start), default=None)


def _last_end(inside: Sequence[ContainerView], phase: PodPhase) -> datetime | None:
    if phase not in (PodPhase.SUCCEEDED, PodPhase.FAILED):
        return None
    ends = [each.termination.finished_at for each in inside if each.termination and each.role is not ContainerRole.INIT]
    return max((end for end in ends if end), default=None)
