"""Whose turn it is: all pools or none, in order, and nobody behind delays anybody in front."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.capacity.nodes import FleetNodes, NodeView, Room
from starforge.domain.capacity.packing import Machines
from starforge.domain.capacity.queueing import Turn, Waiting, decide
from starforge.domain.names import JobId
from tests.unit.capacity.grounds import AT, claim, demands, fits, fleet, machines, node, open_room, views

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


@settings(max_examples=200)
@given(queues, views(), st.sampled_from(["job-1", "job-2"]))
def test_whoever_ends_next_the_first_in_line_starts_as_if_it_were_alone(
    queue: list[Waiting], found: list[NodeView], ends: str
) -> None:
    turns = decided(queue, fleet(*found))
    first = next((turn.job for turn in turns if not turn.admitted), None)
    if first is None:
        return
    head = next(one for one in queue if one.job == first)
    before = [one for one in queue if one.since < head.since]
    behind = {turn.job for turn in turns if turn.admitted} - {one.job for one in before}
    gone = [_without(view, ends) for view in found]
    earlier = [group for one in before for group in one.demand]
    later = [group for one in queue if one.job in behind for group in one.demand]
    if fits([*earlier, *head.demand], open_room(gone)):
        assert fits([*earlier, *head.demand, *later], open_room(gone))


def _without(view: NodeView, job: str) -> NodeView:
    left = tuple(one for one in view.claims if one.run is None or one.run.job != job)
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
