"""Statuses of Pods as Kubernetes 1.34 writes them: kubelet over containerd, the scheduler, and the controllers."""

from typing import Any

from starforge.adapters.kube.labels import KubeObject
from tests.unit.kube.kube_objects import pod

AT = "2026-11-29T12:00:20Z"
NODE = "node-b"
IMAGE = "registry.example.com/train:nope"
RESOLVE = f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": {IMAGE}: not found'
NOT_FOUND = f"rpc error: code = NotFound desc = {RESOLVE}"
TIMED_OUT = (
    f'failed to pull and unpack image "{IMAGE}": failed to resolve reference "{IMAGE}": failed to do request: '
    'Head "https://registry.example.com/v2/train/manifests/nope": dial tcp 10.1.2.3:443: i/o timeout'
)
NO_NODE = (
    "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector. "
    "no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
    "2 Preemption is not helpful for scheduling."
)
NO_CLAIM = (
    '0/3 nodes are available: persistentvolumeclaim "corpus" not found. not found, preemption: 0/3 nodes are '
    "available: 3 Preemption is not helpful for scheduling."
)


def condition(kind: str, status: str, reason: str | None = None, message: str | None = None) -> KubeObject:
    said = {"reason": reason, "message": message} if reason else {}
    return {
        "lastProbeTime": None,
        "lastTransitionTime": AT,
        "observedGeneration": 1,
        "status": status,
        "type": kind,
    } | {name: text for name, text in said.items() if text}


def a_pod(phase: str, *, node_type: str = "worker", scheduled: bool = True, **status: Any) -> KubeObject:
    """A Pod whose status is all that is told: the rest is as in every Pod of ours."""
    found = pod("a", node_type=node_type)
    found["status"] = {"phase": phase, "observedGeneration": 1, "qosClass": "Burstable"} | status
    if scheduled:
        found["spec"]["nodeName"] = NODE
    return found


def waiting(reason: str, message: str | None = None) -> KubeObject:
    said = {"message": message} if message else {}
    state = {"waiting": {"reason": reason} | said}
    conditions = [
        condition("PodReadyToStartContainers", "True"),
        condition("Initialized", "True"),
        condition("Ready", "False", "ContainersNotReady", "containers with unready status: [main]"),
        condition("ContainersReady", "False", "ContainersNotReady", "containers with unready status: [main]"),
        condition("PodScheduled", "True"),
    ]
    return a_pod("Pending", conditions=conditions, containerStatuses=[container(state)])


def container(state: KubeObject, *, name: str = "main", restarts: int = 0) -> KubeObject:
    return {
        "image": IMAGE,
        "imageID": "",
        "lastState": {},
        "name": name,
        "ready": False,
        "restartCount": restarts,
        "started": False,
        "state": state,
    }


def unscheduled(message: str) -> KubeObject:
    conditions = [condition("PodScheduled", "False", "Unschedulable", message)]
    return a_pod("Pending", scheduled=False, conditions=conditions)


def failed_init(code: int = 1) -> KubeObject:
    """An init container that ended, in a Pod that does not restart it."""
    found = a_pod(
        "Failed",
        initContainerStatuses=[container(terminated(code, "Error"), name="fetch-capsule")],
        containerStatuses=[container({"waiting": {"reason": "PodInitializing"}})],
        conditions=[condition("Initialized", "False", "ContainersNotInitialized", "containers with incomplete status")],
    )
    found["spec"]["initContainers"] = [{"name": "fetch-capsule", "image": IMAGE}]
    return found


def terminated(code: int, reason: str, message: str | None = None) -> KubeObject:
    ended: KubeObject = {
        "containerID": "containerd://6de6ed82",
        "exitCode": code,
        "finishedAt": AT,
        "reason": reason,
        "startedAt": "2026-11-29T12:00:01Z",
    }
    return {"terminated": ended | ({"message": message} if message else {})}


def oom_killed() -> KubeObject:
    return a_pod("Failed", containerStatuses=[container(terminated(137, "OOMKilled"))])


def evicted() -> KubeObject:
    message = (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 12Mi. Container main was using "
        "3Gi, request is 2Gi, has larger consumption of memory. "
    )
    return a_pod(
        "Failed",
        reason="Evicted",
        message=message,
        conditions=[condition("DisruptionTarget", "True", "TerminationByKubelet", message)],
        containerStatuses=[container(terminated(137, "Error"))],
    )


def shut_down() -> KubeObject:
    message = "Pod was terminated in response to imminent node shutdown."
    conditions = [condition("DisruptionTarget", "True", "TerminationByKubelet", message)]
    return a_pod("Failed", reason="Terminated", message=message, conditions=conditions)


def disrupted(reason: str, message: str) -> KubeObject:
    """A Pod that a controller takes away: the condition is written first, then the Pod is deleted."""
    running = container({"running": {"startedAt": "2026-11-29T12:00:01Z"}})
    found = a_pod(
        "Running",
        conditions=[
            condition("DisruptionTarget", "True", reason, message),
            condition("Ready", "True"),
            condition("PodScheduled", "True"),
        ],
        containerStatuses=[running | {"ready": True, "started": True}],
    )
    found["metadata"] |= {"deletionTimestamp": "2026-11-29T12:00:50Z", "deletionGracePeriodSeconds": 30}
    return found


def status_unknown() -> KubeObject:
    """What a kubelet writes that comes back and does not find a container of before."""
    message = "The container could not be located when the pod was terminated"
    ended = {"exitCode": 137, "finishedAt": None, "message": message, "reason": "ContainerStatusUnknown"}
    return a_pod("Failed", containerStatuses=[container({"terminated": ended | {"startedAt": None}})])


def unreachable() -> KubeObject:
    """A Pod on a node that does not answer any more, for as long as it is waited for."""
    running = container({"running": {"startedAt": "2026-11-29T12:00:01Z"}}) | {"ready": True, "started": True}
    conditions = [condition("Ready", "False"), condition("ContainersReady", "True"), condition("PodScheduled", "True")]
    return a_pod("Running", conditions=conditions, containerStatuses=[running])
