"""Capacity on a real cluster, by the subscription of a whole installation: each change within a second or two."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Cluster

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts" / "e2e"))

from loop.gateway import Gateway, within
from loop.processes import starforge

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
SOON_S, NOT_READY_S = 20, 120
CAPACITY = """
subscription {
  capacity {
    kind at
    fleet {
      observation { freshness }
      series { name total used free blocked causes { cause gpus message since } holders { kind name gpus nodes } }
    }
    changedNodes { name series ready cordoned total used free blocked causes { cause message } }
    removedNodeIds
  }
}"""
Series = dict[str, Any]


class Live:
    """What the subscription tells, step by step: the series of the fleet as they are now, by name."""

    def __init__(self, steps: AsyncGenerator[dict[str, Any], None]) -> None:
        self._steps = steps
        self.series: dict[str, Series] = {}
        self.changed: list[dict[str, Any]] = []

    async def until(self, is_so: Callable[[dict[str, Series]], bool], seconds: float = SOON_S) -> dict[str, Series]:
        async def follow() -> None:
            while not (self.series and is_so(self.series)):
                step = (await anext(self._steps))["capacity"]
                if step["fleet"] and step["fleet"]["series"] is not None:
                    self.series = {one["name"]: one for one in step["fleet"]["series"]}
                    self.changed = step["changedNodes"]

        await within(seconds, follow(), "what was to be seen in the capacity")
        return self.series


def kubectl(*words: str, text: str | None = None) -> None:
    command = ["kubectl", "--request-timeout=60s", *words]
    subprocess.run(command, input=text, check=True, capture_output=True, text=True, timeout=120)


async def does(*words: str, text: str | None = None) -> None:
    await asyncio.to_thread(kubectl, *words, text=text)


@pytest.fixture
def restart() -> str:
    """The program that kills a process of the cluster and starts it again after some seconds."""
    program = os.environ.get("CLUSTER_RESTART")
    if program:
        return program
    if os.environ.get("CI_CLUSTER") == "1":
        pytest.fail("CLUSTER_RESTART names no program that restarts processes of the cluster")
    pytest.skip("CLUSTER_RESTART names no program that restarts processes of the cluster")


@pytest.fixture
def tidy(cluster: Cluster) -> Iterator[None]:
    """The cluster as it was, whatever becomes of the test."""
    yield
    kubectl("patch", "node", "node-b", "--type=merge", "-p", '{"spec": {"taints": null, "unschedulable": null}}')
    kubectl("label", "nodes", "node-b", "starforge/gpu-series=b200", "--overwrite")
    kubectl("delete", "pod", "-n", "default", "holder", "--ignore-not-found", "--grace-period=0", "--force")


def told(story: Callable[[Live], Awaitable[None]]) -> None:
    async def whole(gateway: Gateway) -> None:
        try:
            async with aclosing(gateway.follow(CAPACITY)) as steps:
                live = Live(steps)
                await live.until(lambda series: series["b200"]["free"] == 4, NOT_READY_S)
                await story(live)
        finally:
            await gateway.close()

    with starforge({}) as gateway:
        asyncio.run(whole(gateway))


def cause(series: Series) -> str | None:
    return series["causes"][0]["cause"] if series["causes"] else None


def holder(image: str) -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: holder, namespace: default}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  nodeSelector: {{starforge/gpu-series: b200}}
  containers:
    - name: main
      image: {image}
      command: [sleep, "600"]
      resources: {{limits: {{nvidia.com/gpu: "3"}}}}
"""


@pytest.mark.usefixtures("tidy")
def test_each_change_of_a_node_is_told_with_its_cause(cluster: Cluster) -> None:
    async def story(live: Live) -> None:
        await does("cordon", "node-b")
        series = await live.until(lambda now: now["b200"]["blocked"] == 4)
        assert (series["b200"]["free"], cause(series["b200"])) == (0, "CORDONED")
        assert series["b200"]["causes"][0]["message"] == "node-b is cordoned."
        assert [(node["name"], node["cordoned"]) for node in live.changed] == [("node-b", True)]
        await does("uncordon", "node-b")
        await live.until(lambda now: now["b200"]["free"] == 4)

        await does("taint", "nodes", "node-b", "example.com/kept=yes:NoSchedule")
        series = await live.until(lambda now: now["b200"]["blocked"] == 4)
        assert cause(series["b200"]) == "TAINTED"
        assert "example.com/kept=yes:NoSchedule" in series["b200"]["causes"][0]["message"]
        await does("taint", "nodes", "node-b", "example.com/kept-")
        await live.until(lambda now: now["b200"]["free"] == 4)

        await does("label", "nodes", "node-b", "starforge/gpu-series-")
        series = await live.until(lambda now: "b200" not in now and "UNLABELLED" in now)
        assert (series["UNLABELLED"]["blocked"], cause(series["UNLABELLED"])) == (4, "UNLABELLED")
        await does("label", "nodes", "node-b", "starforge/gpu-series=b200")
        await live.until(lambda now: now.get("b200", {}).get("free") == 4 and "UNLABELLED" not in now)

        await does("apply", "-f", "-", text=holder(cluster.config.image or ""))
        series = await live.until(lambda now: now["b200"]["used"] == 3)
        [held] = series["b200"]["holders"]
        assert (held["kind"], held["name"], held["nodes"]) == ("FOREIGN", "default/holder", ["node-b"])
        await does("delete", "pod", "-n", "default", "holder", "--wait=true")
        await live.until(lambda now: now["b200"]["free"] == 4)

    told(story)


@pytest.mark.usefixtures("tidy")
def test_a_node_whose_kubelet_is_gone_is_blocked_until_it_is_back(cluster: Cluster, restart: str) -> None:
    async def story(live: Live) -> None:
        killing = asyncio.create_task(
            asyncio.to_thread(subprocess.run, [restart, "kubelet-node-b", "45"], check=True, timeout=120)
        )
        series = await live.until(lambda now: now["b200"]["blocked"] == 4, NOT_READY_S)
        assert cause(series["b200"]) == "NOT_READY"
        assert [(node["name"], node["ready"]) for node in live.changed] == [("node-b", None)]
        await asyncio.gather(killing, live.until(lambda now: now["b200"]["free"] == 4, NOT_READY_S))

    told(story)
