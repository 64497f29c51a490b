"""The nodes of a fleet: what was seen last of each, which are gone, and where in the feed that was told."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck as Slow
from hypothesis import given, settings

from starforge.adapters.store import SqlStore
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView, Room
from starforge.domain.changes import Changes, NodesWrite
from starforge.domain.health import ObserverHeard
from starforge.domain.names import RunKey
from starforge.domain.queries import FeedKind, FeedRow
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, a_job, after, anything, save

NODE = NodeView("node-a", "h200", 8, Room(8, 64_000, 2**40, 110))


def write(store: SqlStore, *nodes: NodeView, gone: tuple[str, ...] = (), fleet: str = "home") -> list[FeedRow]:
    return list(store.commit(Changes(nodes=[NodesWrite(fleet, NodesSeen(after(1), nodes, gone))]), at=AT))


def views(store: SqlStore, fleet: str = "home") -> list[NodeView]:
    found = store.fleet_nodes(fleet)
    assert found is not None
    return list(found.views)


def test_nodes_that_were_never_seen_are_unknown_and_a_fleet_without_any_has_none(store: SqlStore) -> None:
    assert store.fleet_nodes("home") is None
    write(store)
    assert views(store) == []
    assert store.fleet_nodes("other") is None


def test_a_node_is_read_as_it_was_seen_last_and_told_in_one_row_of_the_feed(open_store: Callable[[], SqlStore]) -> None:
    store, other = open_store(), open_store()
    save(store, a_job())
    second = replace(NODE, name="node-b", series=None)
    assert write(store, second, NODE) == [FeedRow(2, AT, FeedKind.CAPACITY, "home", None, None)]
    assert views(other) == [NODE, second]
    cordoned = replace(NODE, cordoned=True)
    write(other, cordoned)
    found = store.fleet_nodes("home")
    assert found is not None
    assert list(found.views) == [cordoned, second]
    assert [known.view for known in found.changed_after(2)] == [cordoned]
    assert (found.position, found.nodes["node-a"].seen_at) == (3, after(1))


def test_a_node_that_went_is_told_as_gone_until_it_is_back(store: SqlStore) -> None:
    write(store, NODE)
    write(store, gone=("node-a",))
    found = store.fleet_nodes("home")
    assert found is not None
    assert (list(found.views), list(found.gone_after(1)), list(found.gone_after(2))) == ([], ["node-a"], [])
    write(store, NODE)
    back = store.fleet_nodes("home")
    assert back is not None
    assert (list(back.views), list(back.gone_after(0))) == ([NODE], [])


def test_fleets_share_nothing(store: SqlStore) -> None:
    write(store, NODE)
    write(store, replace(NODE, gpus=4), fleet="other")
    write(store, gone=("node-a",), fleet="other")
    assert views(store) == [NODE]
    assert views(store, "other") == []


def test_it_says_when_the_fleet_was_heard_last(store: SqlStore) -> None:
    write(store, NODE)
    store.renew_observer("home", holder="me", at=AT, lease_s=15)
    store.note_heard("home", holder="me", heard=ObserverHeard(after(7)))
    found = store.fleet_nodes("home")
    assert found is not None
    assert found.heard_at == after(7)


def test_what_did_not_change_is_not_read_again(store: SqlStore) -> None:
    write(store, *(replace(NODE, name=f"node-{number}") for number in range(50)))
    store.fleet_nodes("home")
    with sent_by(store) as sent:
        store.fleet_nodes("home")
    assert len(sent) == 1
    write(store, replace(NODE, name="node-7", cordoned=True))
    assert len(views(store)) == 50


@settings(max_examples=20, deadline=None, suppress_health_check=[Slow.function_scoped_fixture])
@given(node=anything(NodeView))
def test_any_node_survives(store: SqlStore, node: NodeView) -> None:
    write(store, node)
    found = store.fleet_nodes("home")
    assert found is not None
    assert found.nodes[node.name].view == node


def test_claims_keep_whose_they_are(store: SqlStore) -> None:
    claim = Claim("uid-1", "head", "training", Room(4, 1000, 2**30, 1), RunKey(a_job().id, 1), None, "train", AT)
    write(store, replace(NODE, claims=(claim,)))
    assert views(store)[0].claims == (claim,)
