"""What the watch tells of nodes: all of them once, then what changed, and nothing that it has told already."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.paths import NODES, PODS_OF_THE_CLUSTER, Paths
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.adapters.kube.watch.nodeboard import NodeBoard, NodeRules, claimed, noted
from starforge.adapters.kube.watch.observer import Observer
from starforge.domain.capacity.nodes import NodesSeen, NodeView
from starforge.domain.observation import FleetHeard, RunSeen, Seen
from starforge.domain.ports import Resume
from tests.unit.kube.kube_cluster import Cluster, served
from tests.unit.kube.kube_objects import foreign, node, placed, pod, rayjob
from tests.unit.kube.kube_orders import AT, RUN
from tests.unit.kube.kube_server import Answer, Query, changes, listed, serving, status

RULES = NodeRules("starforge/gpu-series", namespace="ns")
STAY = changes(then="stay")


@dataclass
class Told:
    """A board, and what it has told so far put together."""

    board: NodeBoard

    def nodes(self, *found: KubeObject) -> None:
        self.board.listed(Listed(Kind.NODE, [noted(each) for each in found]))

    def pods(self, *found: KubeObject) -> None:
        self.board.listed(Listed(Kind.CLAIM, [claimed(each) for each in found]))

    def node(self, found: KubeObject, *, deleted: bool = False) -> None:
        self.board.changed(Changed(Kind.NODE, noted(found), deleted))

    def pod(self, found: KubeObject, *, deleted: bool = False) -> None:
        self.board.changed(Changed(Kind.CLAIM, claimed(found), deleted))

    def news(self) -> list[NodesSeen]:
        return list(self.board.take_dirty(AT))

    def changed(self) -> NodeView:
        """The only node that is new."""
        [seen] = self.news()
        [view] = seen.nodes
        assert (seen.whole, seen.gone) == (False, ())
        return view


def watched(rules: NodeRules = RULES) -> Told:
    board = NodeBoard(rules)
    for kind in (Kind.NODE, Kind.CLAIM):
        board.watched(kind, well=True)
    return Told(board)


def filled(*pods: KubeObject, rules: NodeRules = RULES) -> Told:
    told = watched(rules)
    told.nodes(node("node-a"), node("node-b", series="b200", gpus=4), node("cpu", series=None, gpus=0))
    told.pods(*pods)
    [seen] = told.news()
    assert (seen.whole, [view.name for view in seen.nodes]) == (True, ["node-a", "node-b"])
    return told


def test_nothing_is_told_before_both_kinds_were_listed() -> None:
    told = watched()
    told.nodes(node())
    assert told.news() == []
    told.pods(placed(pod("a"), gpus=2))
    [seen] = told.news()
    assert (seen.whole, [view.used.gpus for view in seen.nodes]) == (True, [2])
    assert told.news() == []


def test_nothing_is_told_while_a_kind_is_not_watched() -> None:
    told = filled()
    told.board.watched(Kind.CLAIM, well=False)
    told.node(node("node-a", cordoned=True))
    assert told.news() == []
    told.board.watched(Kind.CLAIM, well=True)
    assert told.changed().cordoned


def test_a_cluster_without_gpus_is_told_as_such() -> None:
    told = watched()
    told.nodes(node(series=None, gpus=0))
    told.pods()
    assert told.news() == [NodesSeen(AT, (), whole=True)]


@pytest.mark.parametrize(
    "change",
    [node("node-a", cordoned=True), node("node-a", ready="Unknown"), node("node-a", healthy=7), node("node-a", gpus=4),
     node("node-a", taints=[{"key": "broken", "effect": "NoSchedule"}]), node("node-a", series="h100")],
    ids=["cordon", "silence", "illness", "fewer", "taint", "label"],
)  # fmt: skip
def test_a_node_that_changed_is_told_and_again_when_it_is_as_before(change: KubeObject) -> None:
    told = filled()
    before = told.board._told["node-a"]
    told.node(change)
    assert told.changed() != before
    told.node(node("node-a"))
    assert told.changed() == before


def test_a_node_that_goes_and_one_that_loses_label_and_devices() -> None:
    told = filled()
    told.node(node("node-a"), deleted=True)
    told.node(node("node-b", series=None, gpus=0))
    assert told.news() == [NodesSeen(AT, (), gone=("node-a", "node-b"))]
    told.node(node("cpu"), deleted=True)
    assert told.news() == []


def test_a_node_that_comes_back_has_the_pods_that_stayed() -> None:
    told = filled(placed(pod("a"), gpus=2))
    told.node(node("node-a"), deleted=True)
    assert [seen.gone for seen in told.news()] == [("node-a",)]
    told.node(node("node-a"))
    assert [claim.run for claim in told.changed().claims] == [RUN]


def test_pods_come_leave_and_go() -> None:
    told = filled()
    told.pod(placed(pod("a"), gpus=2))
    assert [(claim.uid, claim.releasing) for claim in told.changed().claims] == [("a", False)]
    leaving = placed(pod("a", version=2), gpus=2)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-29T12:05:00Z"
    told.pod(leaving)
    view = told.changed()
    assert ([claim.releasing for claim in view.claims], view.used.gpus) == ([True], 2)
    told.pod(leaving, deleted=True)
    view = told.changed()
    assert (view.claims, view.used.pods) == ((), 0)


def test_a_pod_that_has_ended_or_has_no_node_takes_nothing() -> None:
    told = filled(placed(pod("a"), gpus=2))
    ended = placed(pod("a", version=2), gpus=2)
    ended["status"]["phase"] = "Succeeded"
    told.pod(ended)
    assert told.changed().used.gpus == 0
    told.pod(placed(pod("b"), None, gpus=2))
    assert told.news() == []


def test_what_does_not_change_a_node_is_not_told() -> None:
    told = filled(placed(pod("a"), gpus=2), foreign("b"))
    told.pod(placed(pod("a", version=2, state="terminated"), gpus=2))
    told.node(node("node-a", version=2))
    told.pod(foreign("c", "cpu", gpus=0))
    assert told.news() == []


def test_many_changes_of_a_node_are_told_as_one() -> None:
    told = filled()
    for number in range(50):
        told.pod(foreign(f"pod-{number}"))
    assert told.changed().used.pods == 50


def test_a_list_that_tells_nothing_new_is_not_told_and_one_that_does_is() -> None:
    told = filled(placed(pod("a"), gpus=2), foreign("b", "node-b", gpus=1))
    told.nodes(node("node-a"), node("node-b", series="b200", gpus=4))
    told.pods(placed(pod("a", version=9), gpus=2), foreign("b", "node-b", gpus=1))
    assert told.news() == []
    told.pods(foreign("b", "node-b", gpus=1))
    assert (told.changed().name, told.board._told["node-a"].claims) == ("node-a", ())
    told.nodes(node("node-a"))
    assert [seen.gone for seen in told.news()] == [("node-b",)]


def test_runs_of_another_starforge_are_others() -> None:
    other = placed(pod("a"), gpus=2)
    other["metadata"]["namespace"] = "elsewhere"
    told = filled(other)
    [claim] = told.board._told["node-a"].claims
    assert (claim.run, claim.pool, claim.room.gpus) == (None, None, 2)


def test_without_passthrough_machines_hold_the_gpus_that_they_say_they_have() -> None:
    ours = placed(pod("a"))
    ours["metadata"]["annotations"]["starforge.io/gpus"] = "2"
    told = filled(ours, foreign("b", gpus=4), rules=NodeRules("starforge/gpu-series", 8, "ns"))
    view = told.board._told["node-b"]
    assert (view.gpus, view.logical) == (8, True)
    assert told.board._told["node-a"].used.gpus == 2


# --- the whole watch --------------------------------------------------------------------------------------------------


@contextmanager
def observed(url: str) -> Iterator[Iterator[Seen]]:
    stop = threading.Event()
    api = KubeApi(KubeConfig(namespace="ns", api_server=url))
    told = Observer(api, "ns", lambda _run, _source: Resume(None), lambda: AT, RULES).observe(stop)
    try:
        yield told
    finally:
        stop.set()
        list(told)


def nodes_in(told: Iterator[Seen]) -> NodesSeen:
    return next(seen for seen in told if isinstance(seen, NodesSeen))


def test_a_change_in_the_cluster_comes_out() -> None:
    cluster, ours = Cluster(), placed(pod("a"), gpus=2)
    cluster.put(NODES, node("node-a"))
    cluster.put(Paths("ns").rayjobs, rayjob())
    with served(cluster) as url, observed(url) as told:
        first = nodes_in(told)
        assert (first.whole, [view.used.gpus for view in first.nodes]) == (True, [0])
        cluster.put(PODS_OF_THE_CLUSTER, ours)
        assert [view.used.gpus for view in nodes_in(told).nodes] == [2]
        cluster.put(NODES, node("node-a", cordoned=True))
        assert [view.cordoned for view in nodes_in(told).nodes] == [True]
        cluster.compact()  # so that it has to be found by comparing lists
        cluster.delete(PODS_OF_THE_CLUSTER, ours["metadata"]["name"])
        assert [view.used.gpus for view in nodes_in(told).nodes] == [0]
        cluster.delete(NODES, "node-a")
        assert nodes_in(told).gone == ("node-a",)


def test_only_pods_that_count_are_asked_for() -> None:
    with serving(lambda _method, _path, query: STAY if "watch" in query else listed()) as server:
        with observed(server.url) as told:
            nodes_in(told)
        asked = {query.get("fieldSelector") for _, path, query in server.asked if path == PODS_OF_THE_CLUSTER}
    assert asked == {"status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="}


def forbidding(path: str, *, only_watch: bool) -> Callable[[str, str, Query], Answer]:
    """A namespace with a run, and a role that lets nobody list or watch a collection of the cluster."""
    there = {Paths("ns").rayjobs: listed(rayjob()), NODES: listed(node())}

    def answer(_method: str, asked: str, query: Query) -> Answer:
        if asked == path and ("watch" in query or not only_watch):
            return status(403, "Forbidden", "it is forbidden")
        return STAY if "watch" in query else there.get(asked, listed())

    return answer


@pytest.mark.parametrize("path", [NODES, PODS_OF_THE_CLUSTER])
@pytest.mark.parametrize("only_watch", [False, True])
def test_jobs_go_on_where_the_cluster_may_not_be_watched(
    path: str, only_watch: bool, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Seen] = []
    with serving(forbidding(path, only_watch=only_watch)) as server, observed(server.url) as told:

        def has_gone_on() -> bool:
            tries = sum(asked == path and ("watch" in query or not only_watch) for _, asked, query in server.asked)
            return tries > 1 and bool(caplog.records) and any(isinstance(each, RunSeen) for each in seen)

        while not (has_gone_on() and isinstance(seen[-1], FleetHeard) and seen[-1].problem is None):
            seen.append(next(told))
    assert not any(isinstance(each, NodesSeen) for each in seen)
    what = "Nodes" if path == NODES else "Pods of all namespaces"
    [warning] = [record.getMessage() for record in caplog.records]
    assert f"may not list and watch {what}. Apply deploy/rbac.yaml" in warning
