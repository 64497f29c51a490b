"""Whose turn it is on a real cluster: crossed halves, Kueue, and what fits said beside what the scheduler did."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.e2e.conftest import Cluster

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts" / "e2e"))

from loop.gateway import Gateway, within
from loop.jobs import pool, run, start
from loop.processes import starforge

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
REPOSITORY = Path(__file__).parent.parent.parent
QUEUE = "team-a"
TURN_S = 240
T = TypeVar("T")
PLACE = """
query ($id: ID!) {
  job(id: $id) {
    state reason { code message } clocks { kind state }
    queue { position gpusAhead decision queue { name kind length } }
  }
}"""
KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any-node}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory, nvidia.com/gpu]
      flavors:
        - name: any-node
          resources:
            - {name: cpu, nominalQuota: 16}
            - {name: memory, nominalQuota: 64Gi}
            - {name: nvidia.com/gpu, nominalQuota: 1}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a, namespace: NAMESPACE}
spec: {clusterQueue: team-a}
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text("import time\ntime.sleep(3)\nprint('done', flush=True)\n")
    return tmp_path


def spec(name: str, *pools: dict[str, Any], **rest: Any) -> dict[str, Any]:
    deadlines = {"preRunningSeconds": 300, "activeSeconds": 300}
    return {"name": name, "command": ["python3", "main.py"], "pools": pools, "deadlines": deadlines, **rest}


def told(gateway: Gateway, story: Awaitable[T]) -> T:
    async def whole() -> T:
        try:
            return await story
        finally:
            await gateway.close()

    return asyncio.run(whole())


async def place_of(gateway: Gateway, job: str, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The job once it is so."""

    async def look() -> dict[str, Any]:
        while True:
            found: dict[str, Any] = (await gateway.ask(PLACE, id=job))["job"]
            if is_so(found):
                return found
            await asyncio.sleep(0.5)

    found: dict[str, Any] = await within(TURN_S, look(), f"what was waited for of {job}")
    return found


def test_two_jobs_whose_halves_are_crossed_both_finish(cluster: Cluster, code: Path) -> None:
    """Each needs 6 of 8 GPUs of one series and 4 of 4 of the other: one that got half of it would hold up both."""
    one = spec("crossed-one", pool("left", "h200", gpus=6), pool("right", "b200", gpus=4))
    two = spec("crossed-two", pool("left", "b200", gpus=4), pool("right", "h200", gpus=6))

    async def story(gateway: Gateway) -> None:
        first, of_first = await start(gateway, one, code)
        await first.pending.wait()
        second, of_second = await start(gateway, two, code)
        waits = await place_of(gateway, second.id, lambda job: bool(job["queue"] and job["queue"]["position"]))
        assert (waits["state"], waits["reason"]["code"]) == ("SUBMITTED", "QUEUED")
        assert waits["queue"]["position"] == 1
        assert waits["queue"]["decision"] == waits["reason"]["message"]
        assert waits["queue"]["queue"] == {"name": "starforge", "kind": "STARFORGE", "length": 1}
        await asyncio.gather(of_first, of_second)
        assert [followed.job["state"] for followed in (first, second)] == ["SUCCEEDED", "SUCCEEDED"]

    with starforge({"FORGE_QUEUE": "on"}) as gateway:
        told(gateway, story(gateway))


def _needed(name: str) -> str:
    found = os.environ.get(name)
    if found:
        return found
    if os.environ.get("CI_CLUSTER") == "1":
        pytest.fail(f"{name} is not set, which running Kueue needs")
    pytest.skip(f"{name} is not set, which running Kueue needs")


def kubectl(*words: str, text: str | None = None) -> str:
    command = ["kubectl", "--request-timeout=30s", *words]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture
def kueue(cluster: Cluster) -> Iterator[str]:
    """Kueue in the cluster with a queue of one GPU; the name of the queue. Both go with the test."""
    _needed("KUBECONFIG")
    _needed("CLUSTER_IMAGE")
    script = ["bash", str(REPOSITORY / "scripts/e2e/use-kueue.sh")]
    subprocess.run(script, check=True, timeout=800)
    objects = KUEUE.replace("NAMESPACE", cluster.config.namespace)
    try:
        kubectl("apply", "-f", "-", text=objects)
        yield QUEUE
    finally:
        kubectl("delete", "--ignore-not-found", "--wait=true", "-f", "-", text=objects)
        subprocess.run([*script, "--delete"], check=True, timeout=300)


@pytest.mark.timeout(1500)
def test_with_a_queue_it_is_kueues_turn(cluster: Cluster, kueue: str, code: Path) -> None:
    one = spec("kueue-one", pool("train", "h200"), queue=kueue)
    two = spec("kueue-two", pool("train", "h200"), queue=kueue)

    async def story(gateway: Gateway) -> None:
        first, of_first = await start(gateway, one, code)
        await first.pending.wait()
        second, of_second = await start(gateway, two, code)
        waits = await place_of(gateway, second.id, lambda job: "quota" in (job["reason"] or {}).get("message", ""))
        assert (waits["state"], waits["reason"]["code"]) == ("PENDING", "QUEUED")
        assert "nvidia.com/gpu" in waits["reason"]["message"]
        assert waits["queue"]["queue"] == {"name": kueue, "kind": "KUEUE", "length": 1}
        assert {clock["kind"]: clock["state"] for clock in waits["clocks"]}["PRE_RUNNING"] == "NOT_STARTED"
        await asyncio.gather(of_first, of_second)
        assert [followed.job["state"] for followed in (first, second)] == ["SUCCEEDED", "SUCCEEDED"]
        own = await run(gateway, spec("beside-kueue", pool("train", "h200")), code)
        assert own.job["state"] == "SUCCEEDED"

    with starforge({}) as gateway:
        told(gateway, story(gateway))
    assert json.loads(kubectl("get", "workloads", "-n", cluster.config.namespace, "-o", "json"))["items"] == []
