"""What a machine asks for: of Kubernetes, and, as the same numbers, of Ray."""

import json

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.environment import asks_for_gpus
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.spec import PoolSpec

GPU = "nvidia.com/gpu"
_HEAD = {"dashboard-host": "0.0.0.0"}  # noqa: S104  # the operator asks it over the Pod network
# A node waits for the ports that its agents choose, and aborts after 15 s: too early for a cold disk or a busy node. So
# they have none to choose.
_PORTS = {
    "dashboard-agent-grpc-port": "52366",
    "dashboard-agent-listen-port": "52365",
    "metrics-export-port": "8080",
    "runtime-env-agent-port": "52367",
}


def resources(pool: PoolSpec, config: KubeConfig) -> KubeObject:
    """Requests equal limits but for cpu, which has none: Ray starts a dozen processes and gives up after 30 s."""
    wanted = {"memory": pool.memory}
    if asks_for_gpus(pool, config):
        wanted[GPU] = str(pool.gpus_per_machine)
    return {"requests": {"cpu": str(pool.cpus), **wanted}, "limits": dict(wanted)}


def ray_start_params(pool: PoolSpec, *, head: bool) -> dict[str, str]:
    """Ray's logical resources, GPUs also where the Pod asks for none.

    KubeRay pastes each value into a shell line, its autoscaler cuts off the first and last character: hence the quotes.
    """
    custom = "'" + json.dumps({pool.name: 1}) + "'"
    params = {"num-cpus": str(pool.cpus), "num-gpus": str(pool.gpus_per_machine), "resources": custom}
    return {**(_HEAD if head else {}), **_PORTS, **params}
