"""Whose turn it is: all pools or none, in order, and nobody behind delays anybody in front."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.capacity.nodes import FleetNodes, NodeView, Room
from starforge.domain.capacity.packing import Machines
from starforge.domain.capacity.queueing import Turn, Waiting, decide
from starforge.domain.names import JobId
from tests.unit.capacity.grounds import (
    AT,
    SERIES,
    claim,
    demands,
    empty_room,
    fits,
    fleet,
    machines,
    node,
    open_room,
    views,
)

A, B = node("node-a"), node("node-b", "b200", 4)


def waiting(number: int, *demand: Machines, priority: int = 0) -> Waiting:
    return Waiting(JobId(f"job-w{number}"), f"job {number}", demand, priority, AT + timedelta(seconds=number))


def decided(queue: list[Waiting], nodes: FleetNodes | None, *reserved: Machines) -> list[Turn]:
    return list(decide(queue, reserved=reserved, nodes=nodes, fleet="home", until=lambda _: None, at=AT))


queues = st.lists(demands(2), max_size=4).map(lambda some: [waiting(n, *one) for n, one in enumerate(some)])


@settings(max_examples=200)
@given(queues, views(), st.integers(0, 4))
def test_whoever_comes_behind_changes_nothing_for_those_in_front(
    queue: list[Waiting], found: list[NodeView], front: int
) -> None:
    assert decided(queue, fleet(*found))[:front] == decided(queue[:front], fleet(*found))


@settings(max_examples=200)
@given(queues, views())
def test_those_who_go_find_room_together(queue: list[Waiting], found: list[NodeView]) -> None:
    goes = {turn.job for turn in decided(queue, fleet(*found)) if turn.admitted}
    assert fits([group for one in queue if one.job in goes for group in one.demand], open_room(found))


large = st.builds(machines, st.sampled_from("ab"), SERIES, st.integers(1, 2), st.sampled_from([1, 2, 3, 4, 6, 8]))
large_queues = st.lists(st.lists(large, min_size=1, max_size=2), min_size=2, max_size=4)


@st.composite
def large_nodes(draw: st.DrawFn) -> list[NodeView]:
    """Nodes of many sizes, each partly held by one of three jobs."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=1, max_size=4))
    return [
        node(
            f"node-{n}", draw(SERIES), size, claim(n, draw(st.integers(0, size)), job=f"job-{draw(st.integers(1, 3))}")
        )
        for n, size in enumerate(sizes)
    ]


@settings(max_examples=500)
@given(large_queues, large_nodes(), st.sets(st.sampled_from(["job-1", "job-2", "job-3"])))
def test_whoever_ends_next_those_in_front_start_as_if_nobody_were_behind(
    queue: list[list[Machines]], found: list[NodeView], ended: set[str]
) -> None:
    jobs = [waiting(number, *demand) for number, demand in enumerate(queue)]
    turns = decided(jobs, fleet(*found))
    left = open_room([_without(view, ended) for view in found])
    front: list[Machines] = []
    for number, turn in enumerate(turns):
        if turn.admitted:
            break
        front += [group for group in jobs[number].demand if fits(jobs[number].demand, empty_room(found))]
        behind = [group for one, other in zip(jobs, turns, strict=True) if other.admitted for group in one.demand]
        if fits(front, left):
            assert fits([*front, *behind], left)


def _without(view: NodeView, ended: set[str]) -> NodeView:
    left = tuple(one for one in view.claims if one.run is None or one.run.job not in ended)
    return replace(view, claims=left, used=sum((one.room for one in left), Room()))


def test_priority_comes_before_age_and_age_before_the_rest() -> None:
    queue = [waiting(1, machines("a", "h200", 1, 8)), waiting(2, machines("a", "h200", 1, 8), priority=5)]
    assert [(turn.job, turn.admitted) for turn in decided(queue, fleet(A))] == [("job-w2", True), ("job-w1", False)]


def test_all_pools_or_none() -> None:
    [turn] = decided([waiting(1, machines("a", "h200", 1, 1), machines("b", "b200", 2, 4))], fleet(A, B))
    assert not turn.admitted


def test_a_place_tells_of_those_in_front() -> None:
    full = fleet(node("node-a", "h200", 8, claim(1, 8)))
    turns = decided([waiting(n, machines("a", "h200", 2, 4)) for n in range(3)], full)
    assert [(turn.position, turn.gpus_ahead) for turn in turns] == [(1, 0), (2, 8), (3, 16)]


def test_another_series_may_be_used_by_whoever_fits() -> None:
    held = fleet(node("node-a", "h200", 8, claim(1, 1)), B)
    front, behind = decided([waiting(1, machines("a", "h200", 1, 8)), waiting(2, machines("a", "b200", 1, 4))], held)
    assert (front.admitted, behind.admitted) == (False, True)
    assert behind.decision == "All its pools fit now, in room that job 1 in front of it can't use."


def test_room_that_the_one_in_front_waits_for_is_kept() -> None:
    held = fleet(node("node-a", "h200", 8, claim(1, 1)))
    front, behind = decided([waiting(1, machines("a", "h200", 1, 8)), waiting(2, machines("a", "h200", 1, 1))], held)
    assert (front.admitted, behind.admitted) == (False, False)
    said = "It would fit, but that would delay job 1 in front of it, which waits for 8 h200 GPUs."
    assert behind.decision == said


def test_a_pool_that_fits_keeps_its_places_and_leaves_the_others() -> None:
    held = fleet(A, node("node-b", "b200", 4, claim(1, 4)))
    crossed = waiting(1, machines("a", "h200", 1, 6), machines("b", "b200", 1, 4))
    turns = decided([crossed, waiting(2, machines("a", "h200", 1, 2)), waiting(3, machines("a", "h200", 1, 1))], held)
    assert [turn.admitted for turn in turns] == [False, True, False]


def test_a_pool_that_fits_may_have_to_move_for_another_of_its_series() -> None:
    """Its machine with 2 GPUs fits best on node-b now. Once that is free it has to go to node-a, which is kept too."""
    held = fleet(node("node-a", "h200", 3), node("node-b", "h200", 8, claim(1, 2)))
    mixed = waiting(1, machines("a", "h200", 1, 2), machines("b", "h200", 1, 8))
    turns = decided([mixed, waiting(2, machines("a", "h200", 1, 2))], held)
    assert [turn.admitted for turn in turns] == [False, False]
    said = "It would fit, but that would delay job 1 in front of it, which waits for 2 h200 and 8 h200 GPUs."
    assert turns[1].decision == said


def test_nodes_that_those_in_front_can_never_use_are_left_to_others() -> None:
    held = fleet(node("node-a", "h200", 2), node("node-b", "h200", 8, claim(1, 2)))
    turns = decided([waiting(1, machines("a", "h200", 1, 8)), waiting(2, machines("a", "h200", 1, 2))], held)
    assert [turn.admitted for turn in turns] == [False, True]


def test_who_would_be_delayed_is_the_one_whose_machines_do_not_fit() -> None:
    held = fleet(A, node("node-b", "b200", 4, claim(1, 4)), node("node-c", "h200", 8, claim(2, 1)))
    keeps = waiting(1, machines("a", "h200", 1, 4), machines("b", "b200", 1, 4))
    closes = waiting(2, machines("a", "h200", 2, 8))
    turns = decided([keeps, closes, waiting(3, machines("a", "h200", 1, 1))], held)
    assert turns[2].decision == (
        "It would fit, but that would delay job 2 in front of it, which waits for 16 h200 GPUs."
    )


def test_one_that_could_never_run_holds_up_nobody() -> None:
    never, other = decided([waiting(1, machines("a", "h200", 1, 9)), waiting(2, machines("a", "h200", 1, 8))], fleet(A))
    assert (never.admitted, other.admitted) == (False, True)
    assert "largest h200 node" in never.decision


def test_what_had_its_turn_before_counts() -> None:
    [turn] = decided([waiting(1, machines("a", "h200", 1, 8))], fleet(A), machines("a", "h200", 1, 1))
    assert not turn.admitted


def test_nobody_goes_while_the_fleet_is_not_known() -> None:
    for nodes in (None, fleet(A, heard_at=None)):
        [turn] = decided([waiting(1, machines("a", "h200", 1, 1))], nodes)
        assert (turn.admitted, turn.unknown, turn.position) == (False, True, 1)
