"""How far a change reaches: the nodes that it is about are looked at, and what was told always adds up to what is."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.nodes import node_view
from starforge.adapters.kube.watch import nodeboard
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.adapters.kube.watch.nodeboard import NODE_KINDS, NodeBoard, NodeRules, claimed, noted
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView
from tests.unit.kube.kube_objects import foreign, node
from tests.unit.kube.kube_orders import AT

NODES, PODS = 1000, 10_000
Things = dict[str, Any]


def board_of(nodes: list[KubeObject], pods: list[KubeObject]) -> NodeBoard:
    board = NodeBoard(NodeRules("starforge/gpu-series", namespace="ns"))
    for kind in NODE_KINDS:
        board.watched(kind, well=True)
    board.listed(Listed(Kind.NODE, [noted(each) for each in nodes]))
    board.listed(Listed(Kind.CLAIM, [claimed(each) for each in pods]))
    return board


def put_pod(board: NodeBoard, found: KubeObject, *, deleted: bool = False) -> None:
    board.changed(Changed(Kind.CLAIM, claimed(found), deleted))


def gpus(board: NodeBoard) -> dict[str, int]:
    """GPUs in use, of the nodes that are told now."""
    return {view.name: view.used.gpus for seen in board.take_dirty(AT) for view in seen.nodes}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Nodes that were looked at, each with how many Pods were."""
    calls: list[tuple[str, int]] = []

    def counting(found: KubeObject, claims: Any, **rules: Any) -> NodeView | None:
        here: list[Claim] = list(claims)
        calls.append((found["metadata"]["name"], len(here)))
        return node_view(found, here, **rules)

    monkeypatch.setattr(nodeboard, "node_view", counting)
    return calls


def test_a_change_looks_at_its_own_node_of_a_thousand(looked_at: list[tuple[str, int]]) -> None:
    pods = [foreign(f"pod-{number}", f"node-{number % NODES}") for number in range(PODS)]
    board = board_of([node(f"node-{number}") for number in range(NODES)], pods)
    [whole] = board.take_dirty(AT)
    assert (len(whole.nodes), len(looked_at)) == (NODES, NODES)
    looked_at.clear()
    put_pod(board, foreign("pod-7", "node-7", gpus=2, version=2))
    assert gpus(board) == {"node-7": 2}
    put_pod(board, foreign("pod-7", "node-7", gpus=2, version=3))
    assert gpus(board) == {}
    board.changed(Changed(Kind.NODE, noted(node("node-8", cordoned=True))))
    [seen] = board.take_dirty(AT)
    assert [(view.name, view.cordoned) for view in seen.nodes] == [("node-8", True)]
    assert looked_at == [("node-7", PODS // NODES), ("node-8", PODS // NODES)]


def test_a_pod_that_moves_is_told_where_it_was_and_where_it_is(looked_at: list[tuple[str, int]]) -> None:
    board = board_of([node(f"node-{letter}") for letter in "abc"], [foreign("x", "node-a", gpus=2)])
    assert gpus(board) == {"node-a": 2, "node-b": 0, "node-c": 0}
    looked_at.clear()
    put_pod(board, foreign("x", "node-b", gpus=2, version=2))
    assert gpus(board) == {"node-a": 0, "node-b": 2}
    assert sorted(looked_at) == [("node-a", 0), ("node-b", 1)]
    put_pod(board, foreign("x", "node-b", gpus=2, version=3), deleted=True)
    assert gpus(board) == {"node-b": 0}


def test_a_pod_of_a_node_that_is_listed_later_counts_once_it_is() -> None:
    board = board_of([], [foreign("x", "node-a", gpus=2)])
    assert [seen.whole for seen in board.take_dirty(AT)] == [True]
    board.changed(Changed(Kind.NODE, noted(node("node-a"))))
    assert gpus(board) == {"node-a": 2}


# --- whatever happens, in whatever order ------------------------------------------------------------------------------

places = st.sampled_from(["node-a", "node-b", "node-c"])
nodes = st.builds(node, places, series=st.sampled_from([None, "h200"]), gpus=st.sampled_from([0, 8]),
                  cordoned=st.booleans())  # fmt: skip
pods = st.builds(foreign, st.sampled_from("uvw"), places, gpus=st.integers(0, 2))
steps = st.lists(
    st.tuples(st.sampled_from([Kind.NODE, Kind.CLAIM]), st.sampled_from(["put", "delete", "relist"]), nodes, pods,
              st.booleans()),
    max_size=12,
)  # fmt: skip


def key_of(kind: Kind, found: KubeObject) -> str:
    key: str = found["metadata"]["name" if kind is Kind.NODE else "uid"]
    return key


def add(told: dict[str, NodeView], news: Iterable[NodesSeen]) -> None:
    for seen in news:
        told.update({view.name: view for view in seen.nodes})
        for name in seen.gone:
            del told[name]


@settings(max_examples=60, deadline=None)
@given(steps)
def test_what_was_told_adds_up_to_what_there_is(steps: list[tuple[Kind, str, KubeObject, KubeObject, bool]]) -> None:
    there: dict[Kind, Things] = {Kind.NODE: {}, Kind.CLAIM: {}}
    keep = {Kind.NODE: noted, Kind.CLAIM: claimed}
    board, told = board_of([], []), dict[str, NodeView]()
    for kind, what, a_node, a_pod, tells in steps:
        found = a_node if kind is Kind.NODE else a_pod
        if what == "delete":
            there[kind].pop(key_of(kind, found), None)
        else:
            there[kind][key_of(kind, found)] = found
        if what == "relist":
            board.listed(Listed(kind, [keep[kind](each) for each in there[kind].values()]))
        else:
            board.changed(Changed(kind, keep[kind](found), deleted=what == "delete"))
        if tells:
            add(told, board.take_dirty(AT))
    add(told, board.take_dirty(AT))
    [whole] = board_of(list(there[Kind.NODE].values()), list(there[Kind.CLAIM].values())).take_dirty(AT)
    assert told == {view.name: view for view in whole.nodes}
