"""What a fleet tells of its nodes is stored as it is, and only what changed is told."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count

import pytest

from starforge.domain.actions.see_nodes import see_nodes
from starforge.domain.capacity.nodes import NodesSeen, NodeView, Room
from starforge.domain.changes import Watcher
from starforge.domain.errors import Superseded
from starforge.domain.queries import FeedKind
from tests.unit.actions.fakes import START
from tests.unit.actions.world import World

A = NodeView("node-a", "h200", 8, Room(8, 64_000, 2**40, 110))
B = replace(A, name="node-b", series="b200")


_moments = count(1)


def moment() -> datetime:
    """Never the same again in another world: the store that they share remembers nodes by position and time."""
    return START + timedelta(microseconds=next(_moments))


def see(world: World, *nodes: NodeView, gone: tuple[str, ...] = (), whole: bool = False) -> None:
    see_nodes(world.ports, [NodesSeen(moment(), nodes, gone, whole)], None)


def known(world: World) -> dict[str, NodeView]:
    found = world.sql.fleet_nodes("home")
    assert found is not None
    return {view.name: view for view in found.views}


def told(world: World) -> int:
    return sum(row.kind is FeedKind.CAPACITY for row in world.feed())


def test_a_fleet_is_known_from_its_first_word_on_if_it_has_no_nodes(world: World) -> None:
    assert world.sql.fleet_nodes("home") is None
    see(world, whole=True)
    assert (known(world), told(world)) == ({}, 1)
    see(world, whole=True)
    assert told(world) == 1


def test_what_is_as_before_is_not_told_again(world: World) -> None:
    see(world, A, B, whole=True)
    see(world, A, B, whole=True)
    see(world, A)
    assert (known(world), told(world)) == ({"node-a": A, "node-b": B}, 1)
    see(world, replace(A, cordoned=True))
    assert (known(world)["node-a"].cordoned, told(world)) == (True, 2)
    found = world.sql.fleet_nodes("home")
    assert found is not None
    assert [node.view.name for node in found.changed_after(1)] == ["node-a"]


def test_what_a_whole_list_lacks_is_gone(world: World) -> None:
    see(world, A, B, whole=True)
    see(world, B, whole=True)
    assert known(world) == {"node-b": B}


def test_a_node_that_is_told_as_gone_is_gone_and_one_that_was_unknown_is_no_news(world: World) -> None:
    see(world, A, whole=True)
    see(world, gone=("node-z",))
    assert told(world) == 1
    see(world, gone=("node-a",))
    assert known(world) == {}


def test_a_batch_is_taken_in_its_order_and_told_once(world: World) -> None:
    batch = [
        NodesSeen(moment(), (A,), whole=True),
        NodesSeen(moment(), (B,), gone=("node-a",)),
        NodesSeen(moment(), (replace(A, gpus=4),)),
    ]
    see_nodes(world.ports, batch, None)
    assert (known(world), told(world)) == ({"node-a": replace(A, gpus=4), "node-b": B}, 1)


def test_who_lost_the_fleet_writes_nothing(world: World) -> None:
    world.sql.renew_observer("home", holder="other", at=START, lease_s=15)
    with pytest.raises(Superseded):
        see_nodes(world.ports, [NodesSeen(moment(), (A,), whole=True)], Watcher("home", "me"))
    assert world.sql.fleet_nodes("home") is None
