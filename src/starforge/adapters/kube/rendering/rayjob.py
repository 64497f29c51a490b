"""The RayJob of an attempt, as design §7 says."""

from collections.abc import Iterator
from dataclasses import replace

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.capsule import runtime_env
from starforge.adapters.kube.rendering.places import RUNNER
from starforge.adapters.kube.rendering.pods import annotations, labels, ray_pod, submitter_pod
from starforge.adapters.kube.rendering.resources import ray_start_params
from starforge.adapters.kube.settings import KubeConfig, SubmissionMode
from starforge.domain.ports import LaunchOrder
from starforge.domain.spec import JobSpec, PoolSpec

API_VERSION = "ray.io/v1"
# KubeRay's own clocks are a net below ours, for when nobody of ours is there to look at them.
NET_S = 1800
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def render_rayjob(order: LaunchOrder, config: KubeConfig, *, served: frozenset[str]) -> KubeObject:
    """The RayJob to create. `served` holds the names of the fields that the cluster's RayJob has below `spec`."""
    metadata = {
        "name": order.name,
        "namespace": config.namespace,
        "labels": {**labels(order), **_queue(order.spec)},
        "annotations": annotations(order),
    }
    return {"apiVersion": API_VERSION, "kind": "RayJob", "metadata": metadata, "spec": _spec(order, config, served)}


def _queue(spec: JobSpec) -> dict[str, str]:
    """The label by which Kueue takes the RayJob into a LocalQueue, and suspends it until its turn."""
    return {QUEUE_LABEL: spec.queue} if spec.queue else {}


def _spec(order: LaunchOrder, config: KubeConfig, served: frozenset[str]) -> KubeObject:
    spec: KubeObject = {
        "entrypoint": RUNNER,
        "runtimeEnvYAML": runtime_env(order, config),
        "submissionMode": config.submission_mode.value,
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": config.ttl_seconds,
        "backoffLimit": 0,
        **_nets(order.spec, served),
        "rayClusterSpec": _cluster(order, config),
    }
    if config.submission_mode is SubmissionMode.K8S_JOB:
        spec["submitterPodTemplate"] = submitter_pod(order)
    return spec


def _nets(spec: JobSpec, served: frozenset[str]) -> KubeObject:
    limits, nets = spec.deadlines, {}
    # KubeRay counts the active deadline from before the Pods exist, so it needs the bound of the start as well.
    if limits.active_seconds and limits.pre_running_seconds:
        total = limits.pre_running_seconds + limits.active_seconds + spec.cancel_grace_seconds
        nets["activeDeadlineSeconds"] = total + NET_S
    if limits.pre_running_seconds and "preRunningDeadlineSeconds" in served:
        nets["preRunningDeadlineSeconds"] = limits.pre_running_seconds + NET_S
    return nets


def _cluster(order: LaunchOrder, config: KubeConfig) -> KubeObject:
    primary = order.spec.primary
    head = {
        "rayStartParams": ray_start_params(primary, head=True),
        "template": ray_pod(order, primary, config, head=True),
    }
    groups = [_worker_group(order, pool, config) for pool in _worker_pools(order.spec)]
    return {"rayVersion": config.ray_version, "headGroupSpec": head, "workerGroupSpecs": groups}


def _worker_pools(spec: JobSpec) -> Iterator[PoolSpec]:
    """Pools as worker groups: the primary one without its machine zero, which is the head."""
    if spec.primary.machines > 1:
        yield replace(spec.primary, machines=spec.primary.machines - 1)
    yield from spec.pools[1:]


def _worker_group(order: LaunchOrder, pool: PoolSpec, config: KubeConfig) -> KubeObject:
    return {
        "groupName": pool.name,
        "replicas": pool.machines,
        "minReplicas": pool.machines,
        "maxReplicas": pool.machines,
        "rayStartParams": ray_start_params(pool, head=False),
        "template": ray_pod(order, pool, config, head=False),
    }
