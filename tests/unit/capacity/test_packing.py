"""Placements equal what one finds by trying everything, and hold."""

from hypothesis import given, settings

from starforge.domain.capacity.filling import fitting
from starforge.domain.capacity.nodes import NodeView
from starforge.domain.capacity.packing import Machines, as_many_as_fit, open_rooms, place
from tests.unit.capacity.grounds import claim, demands, fits, machines, node, open_room, views


@settings(max_examples=300)
@given(demands(), views())
def test_there_is_a_placement_exactly_when_trying_everything_finds_one(
    demand: list[Machines], found: list[NodeView]
) -> None:
    places = place(demand, open_rooms(found))
    assert (places is not None) == fits(demand, open_room(found))
    if places is not None:
        _hold(demand, places, found)


def _hold(demand: list[Machines], places: tuple[tuple[str, ...], ...], found: list[NodeView]) -> None:
    left = {name: room for name, (_, room) in open_room(found).items()}
    series = {view.name: view.series for view in found}
    for group, names in zip(demand, places, strict=True):
        assert len(names) == group.count
        for name in names:
            assert series[name] == group.series
            assert fitting(group.each, left[name])
            left[name] -= group.each


@given(demands(1), views())
def test_as_many_as_fit_are_placed_and_no_more(demand: list[Machines], found: list[NodeView]) -> None:
    [group] = demand
    count = len(as_many_as_fit(group, open_rooms(found).get(group.series, {})))
    more = [machines(group.pool, group.series, some, group.each.gpus) for some in (count, count + 1)]
    assert not count or fits(more[:1], open_room(found))
    assert count == group.count or not fits(more[1:], open_room(found))


def test_what_greed_would_spoil_is_found_all_the_same() -> None:
    """The largest first on the fullest node leaves no room for the others here."""
    found = [node("a", gpus=7), node("b", gpus=6)]
    demand = [machines("x", "h200", 1, 4), machines("y", "h200", 3, 3)]
    assert place(demand, open_rooms(found)) is not None


def test_large_fleets_of_two_kinds_are_searched_within_bounds() -> None:
    """Every node of 6 takes either a 4 or two 3s. Both pools fit alone, and by the sum of GPUs, but not together."""
    found = open_rooms([node(f"n{number:04}", gpus=6) for number in range(1000)])
    assert place([machines("x", "h200", 500, 4), machines("y", "h200", 1100, 3)], found) is None
    assert place([machines("x", "h200", 500, 4), machines("y", "h200", 1000, 3)], found) is not None


def test_what_greed_would_spoil_is_found_on_a_large_fleet() -> None:
    found = [node(f"n{number:04}", gpus=6 + number % 2) for number in range(200)]
    demand = [machines("x", "h200", 100, 4), machines("y", "h200", 300, 3)]
    places = place(demand, open_rooms(found))
    assert places is not None
    _hold(demand, places, found)


def test_what_is_closed_or_taken_is_no_room() -> None:
    demand = [machines("x", "h200", 1, 8)]
    assert place(demand, open_rooms([node("a")])) == (("a",),)
    assert place(demand, open_rooms([node("a", cordoned=True), node("b", "h200", 8, claim(1, 1))])) is None
