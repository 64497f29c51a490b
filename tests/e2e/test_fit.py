"""What `fit` says beside what the real scheduler does, in a churn of machines that come and go."""

import json
import random
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from starforge.adapters.kube.fleet import KubeFleet
from starforge.domain.capacity.fit import FitVerdict, FleetFit, fit
from starforge.domain.capacity.nodes import FleetNodes, KnownNode, NodesSeen, NodeView, Room
from starforge.domain.capacity.packing import Machines
from starforge.domain.ports import Resume
from tests.e2e.conftest import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
SUBMISSIONS = 100
SEED = 20261130
SEES_S = 30
SERIES = {"h200": (1, 2, 3, 5, 8, 9), "b200": (1, 2, 4, 5), "gb300": (1,)}


@dataclass
class Nodes:
    """The nodes as the watch of the fleet tells them, by a thread of its own."""

    fleet: KubeFleet
    stop: threading.Event = field(default_factory=threading.Event)
    views: dict[str, NodeView] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> None:
        for seen in self.fleet.watch(lambda _run, _source: Resume(None), self.stop):
            if isinstance(seen, NodesSeen):
                with self.changed:
                    self.views.update({node.name: node for node in seen.nodes})
                    self.changed.notify_all()

    def once(self, uids: set[str]) -> FleetNodes:
        """The nodes once exactly these Pods, of those that ask for GPUs, are on them."""
        with self.changed:
            assert self.changed.wait_for(lambda: self._on_nodes() == uids, SEES_S), (self._on_nodes(), uids)
            now = datetime.now(UTC)
            known = {name: KnownNode(view, 1, now) for name, view in self.views.items()}
            return FleetNodes("kuberay", known, {}, 1, now)

    def _on_nodes(self) -> set[str]:
        return {claim.uid for view in self.views.values() for claim in view.claims if claim.room.gpus}


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Nodes]:
    fleet = KubeFleet(cluster.config)
    nodes = Nodes(fleet)
    thread = threading.Thread(target=nodes.run, daemon=True)
    thread.start()
    yield nodes
    nodes.stop.set()
    thread.join(10)
    fleet.close()


def kubectl(*words: str, text: str | None = None) -> str:
    command = ["kubectl", "--request-timeout=60s", "-n", "default", *words]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.fixture
def image(cluster: Cluster) -> Iterator[str]:
    """The image of the machines; all of them are gone after the test."""
    assert cluster.config.image is not None
    kubectl("delete", "pods", "-l", "churn=yes", "--wait=true", "--grace-period=0", "--force")
    yield cluster.config.image
    kubectl("delete", "pods", "-l", "churn=yes", "--wait=true", "--grace-period=0", "--force")


def pod(name: str, group: Machines, label: str, image: str) -> dict[str, Any]:
    """A machine as a Pod that asks the scheduler for the same; that it never starts makes no difference to it."""
    wants = {"cpu": f"{group.each.cpu_millis}m", "memory": str(group.each.memory)}
    limits = {"nvidia.com/gpu": str(group.each.gpus)}
    resources = {"requests": wants | limits, "limits": limits}
    container = {"name": "main", "image": image, "command": ["sleep", "900"], "resources": resources}
    spec = {"nodeSelector": {label: group.series}, "containers": [container], "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"churn": "yes"}},
        "spec": spec | {"restartPolicy": "Never", "automountServiceAccountToken": False},
    }


def placed(names: Sequence[str]) -> dict[str, str | None]:
    """The uid of each Pod that the scheduler put on a node, None for one that it has no node for; once it has said."""
    words = ["get", "pods", "-o", "json", *names]
    for _ in range(SEES_S):
        kubectl(
            "wait", "pod", *names, "--for=jsonpath={.status.conditions[?(@.type=='PodScheduled')].type}=PodScheduled"
        )
        found = json.loads(kubectl(*words))
        pods = found.get("items", [found])
        told = {each["metadata"]["name"]: _scheduled(each) for each in pods}
        if all(status is not None for status in told.values()):
            uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}
            return {name: uids[name] if status else None for name, status in told.items()}
    raise AssertionError(f"the scheduler says nothing of {names}")


def _scheduled(pod: dict[str, Any]) -> bool | None:
    told = {each["type"]: each["status"] for each in pod["status"].get("conditions") or ()}
    return {"True": True, "False": False}.get(told.get("PodScheduled", ""))


def submission(chance: random.Random) -> list[Machines]:
    pools = chance.randint(1, 2)
    return [
        Machines(f"pool-{number}", series, chance.randint(1, 2), Room(chance.choice(gpus), 100, 2**26, 1))
        for number in range(pools)
        for series, gpus in [chance.choice(list(SERIES.items()))]
    ]


def test_what_fits_now_is_placed_and_what_never_does_is_not(cluster: Cluster, nodes: Nodes, image: str) -> None:
    chance, label = random.Random(SEED), cluster.config.gpu_node_label
    there: dict[int, list[tuple[str, str]]] = {}
    verdicts: list[FitVerdict] = []
    for number in range(SUBMISSIONS):
        while len(there) > 3 or (there and chance.random() < 0.4):
            leaver = chance.choice(list(there))
            kubectl("delete", "pod", *(name for name, _ in there.pop(leaver)), "--wait=true", "--grace-period=0")
        demand = submission(chance)
        told = said(demand, nodes, {uid for pods in there.values() for _, uid in pods})
        verdicts.append(told.verdict)
        names = [(f"churn-{number}-{index}", group) for index, group in enumerate(each_of(demand))]
        objects = "\n---\n".join(json.dumps(pod(name, group, label, image)) for name, group in names)
        kubectl("create", "-f", "-", text=objects)
        found = placed([name for name, _ in names])
        assert all(found.values()) == (told.verdict is FitVerdict.NOW), (number, demand, told, found)
        stays = [(name, uid) for name, uid in found.items() if uid]
        there |= {number: stays} if stays else {}
        left_over = [name for name, uid in found.items() if uid is None]
        if left_over:  # one that waits would take what others leave
            kubectl("delete", "pod", *left_over, "--wait=true", "--grace-period=0")
    assert set(verdicts) == {FitVerdict.NOW, FitVerdict.LATER, FitVerdict.NEVER}


def each_of(demand: Sequence[Machines]) -> list[Machines]:
    return [group for group in demand for _ in range(group.count)]


def said(demand: Sequence[Machines], nodes: Nodes, there: set[str]) -> FleetFit:
    now = datetime.now(UTC) + timedelta(seconds=1)
    return fit("kuberay", demand, nodes.once(there), until=lambda _held: None, at=now)
