"""How long KubeRay itself takes to remove a job that has ended, by its TTL alone: a RayJob with nothing of ours."""

import json
import secrets
import time
from typing import Any

from tests.e2e.faults.cluster import STORAGE_MOUNT, Cluster, becomes

TTL_S = 10
ENDED_S, GONE_S = 240, 180
MEMORY = "2Gi"


async def ttl_path(cluster: Cluster) -> float:
    """Seconds from the end of the code to the last Pod's end, of which `TTL_S` are the TTL; the RayJob itself stays.

    RuntimeError if it does not come to that.
    """
    name, mark = f"ttl-{secrets.token_hex(4)}", f"ttl-{secrets.token_hex(4)}"
    ended = cluster.marks / mark
    await cluster.ours("apply", "-f", "-", stdin=json.dumps(rayjob(cluster.settings, name, f"{STORAGE_MOUNT}/{mark}")))

    async def has_ended() -> bool:
        return ended.exists() and ended.read_text().strip() != ""

    async def are_its_pods_gone() -> bool:
        pods = json.loads(await cluster.ours("get", "pods", "-o", "json"))["items"]
        return not any(pod["metadata"]["name"].startswith(f"{name}-") for pod in pods)

    try:
        await becomes(ENDED_S, has_ended)
        await becomes(GONE_S, are_its_pods_gone)
        return time.time() - float(ended.read_text())
    finally:
        await cluster.ours("delete", "rayjob", name, "--wait=false")
        ended.unlink(missing_ok=True)


def rayjob(settings: dict[str, str], name: str, mark: str) -> dict[str, Any]:
    """A RayJob of one small head, whose command notes the time of its end."""
    container = {
        "name": "ray-head",
        "image": settings["FORGE_IMAGE_NEMO_RL"],
        "resources": {"requests": {"cpu": "1", "memory": MEMORY}, "limits": {"memory": MEMORY}},
        "volumeMounts": [{"name": "storage", "mountPath": STORAGE_MOUNT}],
    }
    claim = {"claimName": settings["FORGE_K8S_STORAGE_PVC"]}
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "storage", "persistentVolumeClaim": claim}],
    }
    head = {"rayStartParams": {"num-cpus": "1"}, "template": {"spec": pod}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "submissionMode": "HTTPMode",
            "entrypoint": f"""python3 -c "import time; open('{mark}', 'w').write(str(time.time()))" """.strip(),
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": TTL_S,
            "rayClusterSpec": {"rayVersion": settings["FORGE_KUBERAY_RAY_VERSION"], "headGroupSpec": head},
        },
    }
