"""Seconds from submitJob to the first line of user code, beside the same RayJob applied with kubectl, in one run.

Needs the FORGE_* settings of a cluster (scripts/e2e/use-cluster.sh) and kubectl on the path with an administrator's KUBECONFIG.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts" / "e2e"))

from loop.gateway import Gateway
from loop.jobs import Followed, pool, start
from loop.processes import starforge

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
NAMESPACE = os.environ.get("FORGE_K8S_NAMESPACE", "starforge")
CODE = """import time
now = time.time()
print(f"first {now}", flush=True)
try:
    with open("/proc/1/fd/1", "w") as log:
        log.write(f"plain first {now}\\n")
except OSError as refused:
    print(refused)
print(f"last {time.time()}", flush=True)
"""


@dataclass
class Round:
    """Seconds."""

    ours: float
    kubectl: float
    released: float


async def ours(gateway: Gateway, folder: Path, series: str) -> tuple[float, float, dict[str, Any]]:
    """(submit to first line, last line to released, the RayJob as it was made)."""
    spec = {
        "name": "bench", "command": ["python3", "main.py"], "pools": [pool("train", series)],
        "deadlines": {"preRunningSeconds": 300, "activeSeconds": 600},
    }  # fmt: skip
    began = time.time()
    followed, following = await start(gateway, spec, folder)
    manifest = await _rayjob(followed)
    await following
    first, last = (float(re.search(rf"{word} ([\d.]+)", followed.log)[1]) for word in ("first", "last"))  # type: ignore[index]
    released = datetime.fromisoformat(followed.job["releasedAt"]).timestamp()
    return first - began, released - last, manifest


async def _rayjob(followed: Followed) -> dict[str, Any]:
    """The job's RayJob, as soon as it exists."""
    while True:
        found = await asyncio.to_thread(
            _kubectl, "get", "rayjobs", "-l", f"starforge.io/job={followed.id}", "-o", "json"
        )
        items: list[dict[str, Any]] = json.loads(found)["items"]
        if items:
            secret = await asyncio.to_thread(_kubectl, "get", "secret", items[0]["metadata"]["name"], "-o", "json")
            return items[0] | {"secret": json.loads(secret)["data"]}
        await asyncio.sleep(0.2)


def plain(manifest: dict[str, Any], number: int) -> float:
    """Seconds from `kubectl apply` of the same RayJob, without what is ours in it, to the first line."""
    name = f"bench-plain-{number}"
    # The CA of the object store comes from the job's Secret, which has gone with the job.
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": manifest["secret"]}
    _kubectl("apply", "-f", "-", given=json.dumps(secret))
    body = json.dumps(
        {
            "apiVersion": manifest["apiVersion"], "kind": "RayJob", "metadata": {"name": name},
            "spec": _without_attempt(manifest["spec"], name) | {"entrypoint": "python3 main.py"},
        }
    )  # fmt: skip
    began = time.time()
    _kubectl("apply", "-f", "-", given=body)
    try:
        while True:
            pods = _kubectl("get", "pods", "-l", "ray.io/node-type=head", "-o", "name").split()
            for pod in (pod for pod in pods if f"/{name}-" in pod):
                told = re.search(r"plain first ([\d.]+)", _kubectl("logs", pod, "--tail=-1", check=False))
                if told:
                    return float(told[1]) - began
            time.sleep(0.5)
    finally:
        _kubectl("delete", f"rayjob/{name}", f"secret/{name}", "--wait=true")


def _without_attempt(spec: dict[str, Any], secret: str) -> dict[str, Any]:
    """The spec without the attempt's file, which the runner alone needs, and with another Secret for the CA."""
    copy = json.loads(json.dumps(spec))
    pod = copy["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    gone = {volume["name"] for volume in pod.get("volumes", []) if "attempt" in volume["name"]}
    pod["volumes"] = [volume for volume in pod.get("volumes", []) if volume["name"] not in gone]
    for volume in pod["volumes"]:
        if "secret" in volume:
            volume["secret"]["secretName"] = secret
    for container in pod["containers"]:
        container["volumeMounts"] = [m for m in container.get("volumeMounts", []) if m["name"] not in gone]
        container["env"] = [e for e in container.get("env", []) if e["name"] != "STARFORGE_ATTEMPT_FILE"]
    for key in ("jobId", "suspend"):
        copy.pop(key, None)
    return dict(copy)


def _kubectl(*arguments: str, given: str | None = None, check: bool = True) -> str:
    done = subprocess.run(
        ["kubectl", "-n", NAMESPACE, *arguments], input=given, capture_output=True, text=True, timeout=120, check=False
    )
    if check and done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


async def rounds(gateway: Gateway) -> list[Round]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(CODE)
        for number in range(ROUNDS):
            first, released, manifest = await ours(gateway, Path(folder), "h200")
            found.append(Round(first, await asyncio.to_thread(plain, manifest, number), released))
            print(found[-1], flush=True)
    return found


def main() -> None:
    with starforge({}) as gateway:
        found = asyncio.run(rounds(gateway))
    for name in ("ours", "kubectl", "released"):
        values = [getattr(one, name) for one in found]
        print(f"{name}: median {statistics.median(values):.1f} s, {min(values):.1f} to {max(values):.1f}")
    print(f"more than kubectl: {statistics.median(one.ours - one.kubectl for one in found):.1f} s")


if __name__ == "__main__":
    main()
