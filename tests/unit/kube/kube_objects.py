"""Objects as the API server gives them: recorded ones, and small ones made for a test."""

import json
from pathlib import Path
from typing import Any

from starforge.adapters.kube.labels import KubeObject, run_labels
from starforge.domain.names import LABEL_POOL, RunKey
from tests.unit.kube.kube_orders import RUN

RECORDED = Path(__file__).parent / "recorded"
CREATED = "2026-11-29T12:00:00Z"


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


def rayjob(
    *, run: RunKey = RUN, version: int = 1, job: str = "", deployment: str = "", uid: str = "job-uid"
) -> KubeObject:
    metadata = {
        "name": "try-0123456789",
        "namespace": "ns",
        "uid": uid,
        "creationTimestamp": CREATED,
        "resourceVersion": str(version),
        "labels": run_labels(run),
    }
    status = {"jobStatus": job, "jobDeploymentStatus": deployment, "rayClusterName": "try-0123456789-abcde"}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": {}, "status": status}


def raycluster(*, run: RunKey = RUN, version: int = 1, failure: str | None = None) -> KubeObject:
    """`failure` is what it says of Pods that can't be made."""
    metadata = {
        "name": "try-0123456789-abcde",
        "namespace": "ns",
        "uid": "cluster-uid",
        "creationTimestamp": CREATED,
        "resourceVersion": str(version),
        "labels": run_labels(run),
    }
    told = {"lastTransitionTime": CREATED, "observedGeneration": 1}
    conditions = [{"type": "HeadPodReady", "status": "False", "reason": "HeadPodNotFound", "message": "", **told}]
    if failure:
        reason = "FailedCreateHeadPod"
        conditions.append({"type": "ReplicaFailure", "status": "True", "reason": reason, "message": failure, **told})
    status = {"conditions": conditions, "lastUpdateTime": f"{version}"}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": {}, "status": status}


def pod(
    uid: str, *, run: RunKey = RUN, node_type: str = "worker", created: str = CREATED, state: str = "running",
    version: int = 1, first: int = 0, pool: str = "train",
) -> KubeObject:  # fmt: skip
    labels = {**run_labels(run), LABEL_POOL: pool, "ray.io/node-type": node_type}
    metadata = {
        "name": f"pod-{uid}",
        "namespace": "ns",
        "uid": uid,
        "creationTimestamp": created,
        "resourceVersion": str(version),
        "labels": labels,
        "annotations": {"starforge.io/first-machine": str(first)},
    }
    inside = {
        "running": {"startedAt": created},
        "terminated": {"exitCode": 0},
        "waiting": {"reason": "ContainerCreating"},
    }
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {state: inside[state]}}]}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "image"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def event(about: str, *, uid: str = "event-uid", count: int = 1, kind: str = "Pod") -> KubeObject:
    return {
        "metadata": {"uid": uid, "name": uid, "creationTimestamp": CREATED},
        "involvedObject": {"kind": kind, "name": "x", "namespace": "ns", "uid": about},
        "reason": "FailedScheduling",
        "message": "0/2 nodes",
        "type": "Warning",
        "count": count,
    }


def node(
    name: str = "node-a", *, series: str | None = "h200", gpus: int = 8, healthy: int | None = None,
    ready: str = "True", cordoned: bool = False, taints: Any = (), labels: dict[str, str] | None = None,
    offers: dict[str, str] | None = None, version: int = 1,
) -> KubeObject:  # fmt: skip
    """A node with so many devices, of which some are healthy; `offers` are other things that it has."""
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": CREATED,
        "labels": {**({"starforge/gpu-series": series} if series else {}), **(labels or {})},
        "annotations": {"much": "x" * 500},
    }
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": CREATED}
    spec: KubeObject = {"taints": [*taints, *([cordon] if cordoned else [])]}
    if cordoned:
        spec["unschedulable"] = True
    size = {"cpu": "32", "memory": "64Gi", "pods": "110", **(offers or {})}
    status = {
        "capacity": {**size, **({"nvidia.com/gpu": str(gpus)} if gpus else {})},
        "allocatable": {
            **size, "cpu": "31500m",
            **({"nvidia.com/gpu": str(gpus if healthy is None else healthy)} if gpus else {}),
        },
        "conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": ready, "message": f"it is {ready}", "lastTransitionTime": CREATED},
        ],
        "images": [{"names": ["x" * 200]}] * 50,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def placed(found: KubeObject, on: str | None = "node-a", *, gpus: int = 0, cpu: str = "1") -> KubeObject:
    """A Pod on a node, with what it asks for."""
    asked = {"cpu": cpu, "memory": "1Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    found["spec"]["containers"][0]["resources"] = {"requests": asked}
    if on is not None:
        found["spec"]["nodeName"] = on
        found["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}]
    return found


def foreign(uid: str, on: str = "node-a", *, gpus: int = 0, version: int = 1) -> KubeObject:
    """A Pod of somebody else, in another namespace."""
    found = placed(pod(uid, version=version), on, gpus=gpus)
    found["metadata"] |= {"namespace": "theirs", "labels": {}, "annotations": {}}
    return found
