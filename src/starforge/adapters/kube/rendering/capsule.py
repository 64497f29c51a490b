"""The init container that fetches the Capsule, and the runtime environment that names it."""

from importlib.resources import files

import yaml

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering import places
from starforge.adapters.kube.rendering.environment import literal
from starforge.adapters.kube.rendering.route import Route, route
from starforge.adapters.kube.rendering.volumes import ca_bundle
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.ports import LaunchOrder

# Well within any machine, so that it adds nothing to what the Pod needs.
_SMALL = {"cpu": "500m", "memory": "256Mi"}


def by_init_container(order: LaunchOrder, config: KubeConfig) -> bool:
    return route(order.spec, order.capsule, config.url_max_s) is Route.INIT_CONTAINER


def runtime_env(order: LaunchOrder, config: KubeConfig) -> str:
    """runtimeEnvYAML: the directory that Ray unpacks on every node and starts everything in."""
    if by_init_container(order, config):
        return yaml.safe_dump({"working_dir": f"file://{places.capsule_file(order.transport_sha256)}"}, width=10_000)
    return yaml.safe_dump({"working_dir": order.capsule.url}, width=10_000)


def init_container(order: LaunchOrder, config: KubeConfig, image: str) -> KubeObject:
    """Downloads with the Pod's own image, so that no other is needed, and proves that the bytes are right."""
    mounts: list[KubeObject] = [{"name": places.CAPSULE_VOLUME, "mountPath": places.CAPSULE_DIR}]
    if config.s3_ca_file:
        mounts.append(ca_bundle(order.name).mount)
    return {
        "name": places.INIT_CONTAINER,
        "image": image,
        "command": ["python3", "-c"],
        "args": [literal(_script())],
        "env": _environment(order, config),
        "resources": {"requests": dict(_SMALL), "limits": dict(_SMALL)},
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _script() -> str:
    return files(__package__).joinpath("fetch_capsule.py").read_text(encoding="utf-8")


def _environment(order: LaunchOrder, config: KubeConfig) -> list[KubeObject]:
    env: list[KubeObject] = [
        {"name": "CAPSULE_URL", "valueFrom": {"secretKeyRef": {"name": order.name, "key": places.URL_KEY}}},
        {"name": "CAPSULE_FILE", "value": places.capsule_file(order.transport_sha256)},
        {"name": "CAPSULE_SHA256", "value": order.transport_sha256},
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
    ]
    return env + ([{"name": "SSL_CERT_FILE", "value": places.CA_FILE}] if config.s3_ca_file else [])
