"""A node, and a Pod on it, as JSON, as what capacity is counted from."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from starforge.adapters.kube.labels import ANNOTATION_GPUS, KubeObject, playground_of, run_of
from starforge.adapters.kube.rendering.resources import GPU
from starforge.adapters.kube.series import series_of
from starforge.adapters.kube.views.pods import pool_of
from starforge.adapters.kube.views.requests import parse_quantity, requests, room_of
from starforge.adapters.kube.views.times import parse_time
from starforge.domain.capacity.nodes import Claim, GpuSharing, NodeView, Room, Taint
from starforge.domain.redaction import redact_or_none

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# What the node's own conditions and its cordon say already.
_TOLD_ELSEWHERE = frozenset({_UNSCHEDULABLE, "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_KEEPS_OFF = frozenset({"NoSchedule", "NoExecute"})
_READY = {"True": True, "False": False}
_TAINTS_MAX = 20
_MIG, _SHARED = "nvidia.com/mig-", "nvidia.com/gpu.shared"
_PRODUCT = "nvidia.com/gpu.product"
_ENDED = frozenset({"Succeeded", "Failed"})


def claim_view(pod: KubeObject) -> Claim:
    """What a Pod takes of its node; its GPUs are those of its request."""
    metadata = pod["metadata"]
    conditions = {each["type"]: each for each in (pod.get("status") or {}).get("conditions") or ()}
    run, playground = run_of(pod), playground_of(pod)
    return Claim(
        uid=metadata["uid"],
        name=metadata["name"],
        namespace=metadata.get("namespace"),
        room=requests(pod),
        run=run,
        playground=playground,
        pool=pool_of(pod) if run else None,
        since=parse_time((conditions.get("PodScheduled") or {}).get("lastTransitionTime")),
        releasing="deletionTimestamp" in metadata,
    )


def node_of(pod: KubeObject) -> str | None:
    """The node on which a Pod counts; None before it has one and once it has ended."""
    node: str | None = (pod.get("spec") or {}).get("nodeName")
    return None if (pod.get("status") or {}).get("phase") in _ENDED else node or None


def logical_gpus(pod: KubeObject) -> int:
    """GPUs of a machine of ours that its Pod does not ask Kubernetes for; 0 for Pods of others."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_GPUS, "")
    is_ours = run_of(pod) is not None or playground_of(pod) is not None
    return int(text) if is_ours and text.isdecimal() else 0


def node_view(node: KubeObject, claims: Iterable[Claim], *, label: str, logical: int | None) -> NodeView | None:
    """The node with what is on it; None if it has neither a series nor GPUs, nor parts of some.

    `logical` is how many GPUs each labelled node is taken to have, None where the devices are counted.
    """
    spec, status = node.get("spec") or {}, node.get("status") or {}
    capacity, series, sharing = status.get("capacity") or {}, series_of(node, label), _sharing(node)
    gpus = int(parse_quantity(capacity.get(GPU, 0))) if logical is None else (logical if series else 0)
    has_gpus = gpus > 0 or (logical is None and sharing is not GpuSharing.WHOLE)
    if series is None and not has_gpus:
        return None
    here = sorted(claims, key=lambda claim: claim.uid)
    allocatable = _allocatable(status)
    ready: KubeObject = next((each for each in status.get("conditions") or () if each["type"] == "Ready"), {})
    is_ready = _READY.get(ready.get("status", "Unknown"))
    return NodeView(
        name=node["metadata"]["name"],
        series=series,
        gpus=gpus,
        allocatable=allocatable if logical is None else replace(allocatable, gpus=gpus),
        used=sum((claim.room for claim in here), Room()),
        claims=tuple(claim for claim in here if claim.room.gpus or claim.pool or claim.playground),
        ready=is_ready,
        ready_message=None if is_ready else redact_or_none(ready.get("message")),
        ready_changed_at=parse_time(ready.get("lastTransitionTime")),
        cordoned=spec.get("unschedulable") is True,
        cordoned_at=_cordoned_at(spec),
        taints=_taints(spec),
        logical=logical is not None,
        sharing=sharing,
        product=(node["metadata"].get("labels") or {}).get(_PRODUCT),
    )


def _allocatable(status: KubeObject) -> Room:
    found = status.get("allocatable") or {}
    return room_of(found, pods=int(parse_quantity(found.get("pods", 0))))


def _taints(spec: KubeObject) -> tuple[Taint, ...]:
    found = (each for each in spec.get("taints") or () if each.get("effect") in _KEEPS_OFF)
    told = [Taint(each["key"], each.get("value") or None, each["effect"]) for each in found]
    return tuple(taint for taint in told if taint.key not in _TOLD_ELSEWHERE)[:_TAINTS_MAX]


def _cordoned_at(spec: KubeObject) -> datetime | None:
    if spec.get("unschedulable") is not True:
        return None  # the taint goes a little later
    added = (each.get("timeAdded") for each in spec.get("taints") or () if each["key"] == _UNSCHEDULABLE)
    return parse_time(next(added, None))


def _sharing(node: KubeObject) -> GpuSharing:
    """By what NVIDIA's device plugin offers and by its labels.

    A strategy for MIG is also named by nodes whose GPUs are whole: only the product tells then that slices are counted.
    """
    labels, capacity = node["metadata"].get("labels") or {}, (node.get("status") or {}).get("capacity") or {}
    offers = [name for name, amount in capacity.items() if name.startswith("nvidia.com/") and parse_quantity(amount)]
    is_single = labels.get("nvidia.com/mig.strategy") == "single" and "-MIG-" in labels.get(_PRODUCT, "")
    if is_single or any(name.startswith(_MIG) for name in offers):
        return GpuSharing.MIG
    replicas = labels.get("nvidia.com/gpu.replicas", "")
    if _SHARED in offers or (replicas.isdecimal() and int(replicas) > 1):
        return GpuSharing.TIME_SLICED
    return GpuSharing.WHOLE
