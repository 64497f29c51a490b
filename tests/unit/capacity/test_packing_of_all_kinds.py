"""Machines are placed as if every way had been tried, whichever of GPUs, CPU, memory or Pods runs out."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings

from starforge.domain.capacity.nodes import NodeView, Room
from starforge.domain.capacity.packing import (
    Machines,
    as_many_as_fit,
    empty_rooms,
    machines_of,
    open_rooms,
    place,
    without,
)
from starforge.domain.spec import PoolDraft
from starforge.domain.spec_rules import freeze
from tests.unit.capacity.oracle import amounts, can_place, demands, left_if_empty, left_now, most_of, nodes
from tests.unit.examples import DEFAULTS, DRAFT


@settings(max_examples=500)
@given(demands(), nodes())
def test_a_place_is_found_exactly_when_there_is_one(demand: list[Machines], found: list[NodeView]) -> None:
    for rooms, left in ((open_rooms(found), left_now(found)), (empty_rooms(found), left_if_empty(found))):
        assert (place(demand, rooms) is not None) == can_place(demand, left)


@settings(max_examples=300)
@given(demands(), nodes())
def test_the_places_hold_when_machines_are_put_there_one_by_one(demand: list[Machines], found: list[NodeView]) -> None:
    rooms = open_rooms(found)
    places = place(demand, rooms)
    if places is None:
        return
    left = {view.name: list(amounts(view.allocatable - view.used)) for view in found}
    for group, names in zip(demand, places, strict=True):
        assert len(names) == group.count
        for name in names:
            assert name in rooms[group.series]
            for index, need in enumerate(amounts(group.each)):
                assert left[name][index] >= need
                left[name][index] -= need
    after = without(rooms, demand, places)
    assert {name: list(amounts(room)) for some in after.values() for name, room in some.items()} == {
        name: left[name] for some in rooms.values() for name in some
    }


@settings(max_examples=300)
@given(demands(1), nodes())
def test_of_one_pool_as_many_are_placed_as_can_be(demand: list[Machines], found: list[NodeView]) -> None:
    [group] = demand
    rooms = open_rooms(found).get(group.series, {})
    names = as_many_as_fit(group, rooms)
    assert len(names) == most_of(group, left_now(found))
    assert all(rooms[name].holds(_times(group.each, count)) for name, count in Counter(names).items())


def _times(each: Room, count: int) -> Room:
    return sum((each for _ in range(count)), Room())


def test_nothing_wanted_is_placed_anywhere_also_on_no_nodes() -> None:
    assert place([], {}) == ()
    assert place([Machines("idle", "h200", 0, Room(1, 1, 1, 1))], {}) == ((),)


def test_a_machine_without_gpus_finds_room_where_more_gpus_are_held_than_are_left() -> None:
    rooms = {"h200": {"node-a": Room(-2, 100, 100, 5)}}
    assert place([Machines("load", "h200", 1, Room(0, 100, 100, 1))], rooms) == (("node-a",),)
    assert place([Machines("train", "h200", 1, Room(1, 100, 100, 1))], rooms) is None


def test_a_spec_asks_pool_by_pool_in_its_own_order_and_units() -> None:
    pools = (PoolDraft("train", "h200", 2, 4, 8, "16Gi"), PoolDraft("load", "b200", 3, 0, 1, "512Mi"))
    spec = freeze(replace(DRAFT, pools=pools), DEFAULTS)
    assert machines_of(spec) == (
        Machines("train", "h200", 2, Room(4, 8000, 16 * 2**30, 1)),
        Machines("load", "b200", 3, Room(0, 1000, 512 * 2**20, 1)),
    )


def test_a_placement_that_greed_misses_is_found() -> None:
    """The largest machine first, on the fullest node that takes it, leaves no two nodes for the others."""
    rooms = {"h200": {"a": Room(6, 9, 9, 9), "b": Room(7, 9, 9, 9)}}
    demand = [Machines("x", "h200", 1, Room(4, 1, 1, 1)), Machines("y", "h200", 3, Room(3, 1, 1, 1))]
    assert place(demand, rooms) == (("b",), ("b", "a", "a"))
