"""The Pod of a playground: alone, without a controller that would start it again."""

from starforge.adapters.kube.labels import KubeObject, run_labels
from starforge.adapters.kube.rendering.environment import literal, server_environment
from starforge.adapters.kube.rendering.resources import resources
from starforge.adapters.kube.rendering.volumes import mounted_by_server
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.names import ANNOTATION_NAME, LABEL_PLAYGROUND, LABEL_PROJECT
from starforge.domain.playground import LIFE_MAX_S, PORT, SERVER
from starforge.domain.playground_spec import options
from starforge.domain.ports import PlaygroundOrder

# Kubernetes' own clock is a net below ours, for when nobody of ours is there to look at them.
NET_S = 24 * 3600
_PROBE_S, _ANSWERS_IN_S, _FAILURES = 2, 5, 3


def render_playground(order: PlaygroundOrder, config: KubeConfig) -> KubeObject:
    """The Pod to create."""
    machine = order.spec.machine
    labels = {
        **run_labels(order.run, order.installation),
        LABEL_PROJECT: machine.project,
        LABEL_PLAYGROUND: order.run.job,
    }
    metadata = {
        "name": order.name,
        "namespace": config.namespace,
        "labels": labels,
        "annotations": {ANNOTATION_NAME: machine.name},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(order, config)}


def _spec(order: PlaygroundOrder, config: KubeConfig) -> KubeObject:
    machine = order.spec.machine
    volumes = mounted_by_server(machine.primary, config)
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        # A Service called vllm would be told as VLLM_PORT, which the server reads as its own.
        "enableServiceLinks": False,
        "activeDeadlineSeconds": machine.deadlines.pre_running_seconds + LIFE_MAX_S + NET_S,
        "nodeSelector": {config.gpu_node_label: machine.primary.series},
        "containers": [_container(order, config, [each.mount for each in volumes])],
        "volumes": [each.volume for each in volumes],
    }


def _container(order: PlaygroundOrder, config: KubeConfig, mounts: list[KubeObject]) -> KubeObject:
    machine = order.spec.machine
    if machine.image is None:
        raise ValueError(f"{order.run} has no image: a spec of this fleet was frozen without one")
    return {
        "name": SERVER,
        "image": machine.image,
        "command": list(machine.command),
        # The API server reaches it by the Pod's own address.
        "args": [literal(arg) for arg in options(order.spec, host="0.0.0.0")],  # noqa: S104
        "env": server_environment(machine, config),
        "ports": [{"name": "http", "containerPort": PORT}],
        "readinessProbe": {
            "httpGet": {"path": "/health", "port": PORT},
            "periodSeconds": _PROBE_S,
            "timeoutSeconds": _ANSWERS_IN_S,
            "failureThreshold": _FAILURES,
        },
        "resources": resources(machine.primary, config),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
