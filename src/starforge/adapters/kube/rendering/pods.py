"""Pod templates of the Ray cluster and of the submitter."""

from starforge.adapters.kube.labels import ANNOTATION_FIRST_MACHINE, ANNOTATION_GPUS, KubeObject, run_labels
from starforge.adapters.kube.rendering import places
from starforge.adapters.kube.rendering.capsule import by_init_container, init_container
from starforge.adapters.kube.rendering.environment import environment
from starforge.adapters.kube.rendering.resources import resources
from starforge.adapters.kube.rendering.volumes import mounted
from starforge.adapters.kube.series import node_selector
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.names import ANNOTATION_NAME, LABEL_POOL, LABEL_PROJECT
from starforge.domain.ports import LaunchOrder
from starforge.domain.spec import PoolSpec


def labels(order: LaunchOrder) -> dict[str, str]:
    return {**run_labels(order.run, order.installation), LABEL_PROJECT: order.spec.project}


def annotations(order: LaunchOrder) -> dict[str, str]:
    """What people wrote: not every text may be a label."""
    return {ANNOTATION_NAME: order.spec.name}


def ray_pod(order: LaunchOrder, pool: PoolSpec, config: KubeConfig, *, head: bool) -> KubeObject:
    """Template of a machine of `pool`.

    Nothing restarts in place: a container that ended keeps its log and exit code until its Pod goes, and a head that
    came back would run the job again.
    """
    by_init = by_init_container(order, config)
    volumes = mounted(pool, config, secret=order.name, head=head, capsule_by_init=by_init)
    spec: KubeObject = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "nodeSelector": node_selector(config.gpu_node_label, pool.series),
        "containers": [_ray_container(order, pool, config, head=head, mounts=[each.mount for each in volumes])],
        "volumes": [each.volume for each in volumes],
    }
    if by_init:
        spec["initContainers"] = [init_container(order, config, image_of(order, pool))]
    first = 0 if head or pool.name != order.spec.primary.name else 1
    gpus = str(pool.gpus_per_machine)
    notes = {**annotations(order), ANNOTATION_FIRST_MACHINE: str(first), ANNOTATION_GPUS: gpus}
    metadata = {"labels": {**labels(order), LABEL_POOL: pool.name}, "annotations": notes}
    return {"metadata": metadata, "spec": spec}


def submitter_pod(order: LaunchOrder) -> KubeObject:
    """Template of KubeRay's submitter, which fills in the command itself."""
    size = {"cpu": "500m", "memory": "512Mi"}
    container = {
        "name": places.SUBMITTER_CONTAINER,
        "image": image_of(order, order.spec.primary),
        "resources": {"requests": dict(size), "limits": dict(size)},
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
    }
    spec = {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [container]}
    return {"metadata": {"labels": labels(order), "annotations": annotations(order)}, "spec": spec}


def image_of(order: LaunchOrder, pool: PoolSpec) -> str:
    image = pool.image or order.spec.image
    if image is None:
        raise ValueError(f"pool {pool.name} of {order.run} has no image: a spec of this fleet was frozen without one")
    return image


def _ray_container(
    order: LaunchOrder, pool: PoolSpec, config: KubeConfig, *, head: bool, mounts: list[KubeObject]
) -> KubeObject:
    return {
        "name": places.HEAD_CONTAINER if head else places.WORKER_CONTAINER,
        "image": image_of(order, pool),
        "env": environment(order.spec, pool, config, head=head),
        "resources": resources(pool, config),
        "volumeMounts": mounts,
    }
