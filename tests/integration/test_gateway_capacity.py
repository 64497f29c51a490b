"""Capacity and fits through a real gateway, while nodes come, change and go."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from starforge.adapters.wiring import Parts
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView, Room, Taint
from starforge.domain.changes import Changes, NodesWrite
from starforge.domain.health import ObserverHeard
from starforge.domain.names import JobId, RunKey
from tests.integration.gateway import Gateway, Platform, a_submission, idle_platform

FLEET = "simulated"
CAPACITY = """
query($fleet: String) { feed { cursor } capacity(fleet: $fleet) {
  id name kind observation { freshness } waiting { workload { id } machines gpusPerMachine message }
  series { name labelled total used free blocked largestFree causes { cause gpus nodes message }
    nodes(blockedOnly: true) { name } holders { kind name workload { id } gpus nodes } }
} }
"""
LIVE = """
subscription($after: String) { capacity(after: $after) {
  cursor kind removedNodeIds changedNodes { id name total used free blocked causes { cause message } }
  fleet { series { name total free blocked } waiting { workload { id } } }
} }
"""
FITS = """
query($spec: JobSpecInput!) { fits(spec: $spec) {
  verdict message fleet userErrors { code field }
  fleets { verdict message pools { pool verdict placeable nodes } mustEnd { name gpus workload { id } } }
} }
"""
SUBMIT = """
mutation($input: SubmitJobInput!) { submitJob(input: $input) {
  status job { id } userErrors { code field message ... on UnsatisfiableError { fit { verdict fleets { message } } } }
} }
"""
SUBMIT_MANY = """
mutation($items: [SubmitJobInput!]!) { submitJobs(input: {items: $items}) {
  outcomes { status userErrors { __typename code field } }
} }
"""
ROOM = Room(4, 64_000, 2**40, 100)


class Cluster:
    """What an observer tells of the nodes of the fleet."""

    def __init__(self, parts: Parts) -> None:
        self.store, self.now, self.publish = parts.ports.store, parts.ports.now, parts.ports.publish
        self.store.renew_observer(FLEET, holder="test", at=self.now(), lease_s=3600)
        self.hear()

    def hear(self) -> None:
        self.store.note_heard(FLEET, holder="test", heard=ObserverHeard(self.now(), 0.1))

    def see(self, *nodes: NodeView, gone: Sequence[str] = ()) -> None:
        seen = NodesSeen(self.now(), nodes, tuple(gone))
        self.publish(self.store.commit(Changes(nodes=[NodesWrite(FLEET, seen)]), at=self.now()))


def a_node(name: str, *claims: Claim, **changes: Any) -> NodeView:
    used = sum((claim.room for claim in claims), Room())
    return replace(NodeView(name, "h200", 4, ROOM, used, claims), **changes)


def a_claim(job: str, gpus: int) -> Claim:
    return Claim(
        f"{job}-pod", f"{job}-head", "training", Room(gpus, 1000, 2**30, 1), RunKey(JobId(job), 1), pool="main"
    )


def a_spec(gpus: int, machines: int = 1, series: str = "h200") -> dict[str, Any]:
    pool = {"name": "main", "series": series, "machines": machines, "gpusPerMachine": gpus}
    spec: dict[str, Any] = a_submission(pools=[pool])["spec"]
    return spec


@pytest.fixture
def there(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with idle_platform(tmp_path / "platform", tmp_path_factory.getbasetemp() / "runner") as platform:
        yield platform


@pytest.fixture
def cluster(there: Platform) -> Iterator[Cluster]:
    parts = there.parts()
    yield Cluster(parts)
    parts.close()


@pytest.fixture
def gateway(there: Platform, cluster: Cluster) -> Iterator[Gateway]:
    with there.gateway() as gateway:
        yield gateway


def test_what_there_is(gateway: Gateway, cluster: Cluster) -> None:
    assert gateway.ask(CAPACITY)["capacity"][0]["series"] is None
    job, other = gateway.submit(name="holds"), gateway.submit(name="waits")
    tainted = a_node("node-b", taints=(Taint("maintenance", None, "NoSchedule"),))
    cluster.see(a_node("node-a", a_claim(job, 3)), tainted, a_node("node-c", series=None))
    [fleet] = gateway.ask(CAPACITY, fleet=FLEET)["capacity"]
    assert (fleet["name"], fleet["kind"], fleet["observation"]["freshness"]) == (FLEET, "SIMULATED", "LIVE")
    unlabelled, h200 = fleet["series"]
    assert (unlabelled["name"], unlabelled["labelled"], unlabelled["blocked"]) == ("UNLABELLED", False, 4)
    assert {name: h200[name] for name in ("total", "used", "free", "blocked", "largestFree")} == {
        "total": 8, "used": 3, "free": 1, "blocked": 4, "largestFree": 1,
    }  # fmt: skip
    assert [(one["cause"], one["gpus"], one["nodes"]) for one in h200["causes"]] == [("TAINTED", 4, 1)]
    assert "maintenance:NoSchedule" in h200["causes"][0]["message"]
    assert [node["name"] for node in h200["nodes"]] == ["node-b"]
    holder = {"kind": "JOB", "name": "holds", "workload": {"id": job}, "gpus": 3, "nodes": ["node-a"]}
    assert h200["holders"] == [holder]
    assert [(one["workload"]["id"], one["machines"], one["gpusPerMachine"]) for one in fleet["waiting"]] == [
        (other, 1, 1)
    ]
    assert gateway.ask(CAPACITY, fleet="elsewhere")["capacity"] == []


def test_changes_are_told_live_and_nothing_is_missed_over_a_cut(there: Platform, cluster: Cluster) -> None:
    cluster.see(*(a_node(f"node-{name}") for name in "abc"))
    with there.gateway() as gateway, gateway.live(LIVE) as live, gateway.live(LIVE) as other:
        for one in (live, other):
            snapshot, bookmark = one.until(lambda step: step["kind"] == "BOOKMARK")
            assert snapshot["kind"] == "SNAPSHOT"
            assert [node["name"] for node in snapshot["changedNodes"]] == ["node-a", "node-b", "node-c"]
            assert (bookmark["fleet"], bookmark["changedNodes"]) == (None, [])
        cluster.see(a_node("node-b", cordoned=True))
        step = next(iter(live))
        assert next(iter(other)) == step
        assert step["kind"] == "UPDATED"
        assert step["fleet"]["series"] == [{"name": "h200", "total": 12, "free": 8, "blocked": 4}]
        [node] = step["changedNodes"]
        assert (node["name"], node["blocked"], node["causes"][0]["cause"]) == ("node-b", 4, "CORDONED")
        cluster.see(gone=["node-c"])
        gone = next(iter(live))
        assert (gone["changedNodes"], gone["removedNodeIds"]) == ([], [f"node.{FLEET}.node-c"])
        job = gateway.submit()
        waits = live.until(lambda step: bool(step["fleet"] and step["fleet"]["waiting"]))[-1]
        assert (waits["changedNodes"], waits["fleet"]["waiting"]) == ([], [{"workload": {"id": job}}])
        with gateway.live(LIVE, after=step["cursor"]) as again:
            resumed, bookmark = again.until(lambda step: step["kind"] == "BOOKMARK")
            assert (resumed["kind"], resumed["changedNodes"]) == ("UPDATED", [])
            assert (resumed["removedNodeIds"], resumed["fleet"]) == (gone["removedNodeIds"], waits["fleet"])
        with gateway.live(LIVE, after=snapshot["cursor"]) as again:
            resumed = next(iter(again))
            assert [node["name"] for node in resumed["changedNodes"]] == ["node-b"]
            cluster.see(a_node("node-b"))
            step = again.until(lambda step: bool(step["kind"] == "UPDATED"))[-1]
            assert [(node["name"], node["free"]) for node in step["changedNodes"]] == [("node-b", 4)]


def test_a_query_and_a_subscription_after_it_miss_nothing(gateway: Gateway, cluster: Cluster) -> None:
    cluster.see(a_node("node-a"))
    cursor = gateway.ask(CAPACITY)["feed"]["cursor"]
    cluster.see(a_node("node-a", cordoned=True))
    with gateway.live(LIVE, after=cursor) as live:
        seen = live.until(lambda step: any(node["blocked"] for node in step["changedNodes"]))
    assert seen[-1]["fleet"]["series"][0]["blocked"] == 4


def test_whether_it_fits(gateway: Gateway, cluster: Cluster) -> None:
    def fits(spec: dict[str, Any]) -> dict[str, Any]:
        cluster.hear()
        report: dict[str, Any] = gateway.ask(FITS, spec=spec)["fits"]
        return report

    assert fits(a_spec(4))["verdict"] == "UNKNOWN"
    cluster.see(a_node("node-a"), a_node("node-b"))
    now = fits(a_spec(4, 2))
    assert (now["verdict"], now["fleet"], now["userErrors"]) == ("NOW", FLEET, [])
    assert now["fleets"][0]["pools"] == [
        {"pool": "main", "verdict": "NOW", "placeable": 2, "nodes": ["node-a", "node-b"]}
    ]
    job = gateway.submit(name="holds", pools=a_spec(2)["pools"])
    assert fits(a_spec(4, 2))["verdict"] == "LATER"  # as it was promised its place
    cluster.see(a_node("node-a", a_claim(job, 2)))
    later = fits(a_spec(4, 2))
    assert (later["verdict"], later["fleet"]) == ("LATER", FLEET)
    assert later["fleets"][0]["mustEnd"] == [{"name": "holds", "gpus": 2, "workload": {"id": job}}]
    never = fits(a_spec(5))
    assert (never["verdict"], never["fleet"]) == ("NEVER", None)
    wrong = fits({**a_spec(4), "name": "", "priority": 1000})
    assert wrong["verdict"] == "NEVER"
    assert {tuple(error["field"]) for error in wrong["userErrors"]} == {("spec", "name"), ("spec", "priority")}


def test_what_never_fits_is_refused_in_the_same_words_unless_it_may(gateway: Gateway, cluster: Cluster) -> None:
    spec = a_spec(8)
    early = gateway.ask(SUBMIT, input=a_submission(pools=spec["pools"]))["submitJob"]
    assert early["status"] == "CREATED"  # as nothing was known of the nodes
    cluster.see(a_node("node-a"))
    said = gateway.ask(FITS, spec=spec)["fits"]["message"]
    given = a_submission(pools=spec["pools"], key="again")
    refused = gateway.ask(SUBMIT, input=given)["submitJob"]
    fit = {"verdict": "NEVER", "fleets": [{"message": said}]}
    error = {"code": "UNSATISFIABLE", "field": ["input", "spec", "pools"], "message": said, "fit": fit}
    assert refused == {"status": "REFUSED", "job": None, "userErrors": [error]}
    allowed = gateway.ask(SUBMIT, input={**given, "allowUnsatisfiable": True})["submitJob"]
    assert (allowed["status"], allowed["userErrors"]) == ("CREATED", [])
    replayed = gateway.ask(SUBMIT, input=given)["submitJob"]
    assert (replayed["status"], replayed["job"]) == ("REPLAYED", allowed["job"])
    items = [a_submission(pools=spec["pools"]), a_submission(), {**given, "allowUnsatisfiable": True}]
    outcomes = gateway.ask(SUBMIT_MANY, items=items)["submitJobs"]["outcomes"]
    assert [one["status"] for one in outcomes] == ["REFUSED", "CREATED", "CREATED"]
    assert outcomes[0]["userErrors"] == [
        {"__typename": "UnsatisfiableError", "code": "UNSATISFIABLE", "field": ["input", "items", "0", "spec", "pools"]}
    ]
