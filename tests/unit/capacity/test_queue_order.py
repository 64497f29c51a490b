"""Whose turn it is where CPU, memory and Pods run out as well, and that nobody in front is delayed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.capacity.nodes import NodeView
from starforge.domain.capacity.packing import Machines
from starforge.domain.capacity.queueing import Turn, Waiting, decide
from starforge.domain.capacity.view import HeldGpus
from starforge.domain.names import JobId
from tests.unit.capacity.grounds import AT, claim, fleet, machines, node
from tests.unit.capacity.oracle import HOLDERS, can_place, demands, ended, left_if_empty, left_now, nodes

HOUR = AT + timedelta(hours=1)


def a_job(number: int, *demand: Machines, priority: int = 0, came_s: float | None = None) -> Waiting:
    since = AT + timedelta(seconds=number if came_s is None else came_s)
    return Waiting(JobId(f"job-w{number}"), f"job {number}", demand, priority, since)


def turns(queue: Sequence[Waiting], views: Sequence[NodeView], reserved: Sequence[Machines] = ()) -> list[Turn]:
    nodes_ = fleet(*views)
    return list(decide(queue, reserved=reserved, nodes=nodes_, fleet="home", until=lambda _: None, at=AT))


def wanted(queue: Sequence[Waiting]) -> list[Machines]:
    return [group for one in queue for group in one.demand]


queues = st.lists(st.tuples(demands(2, 2), st.integers(0, 1)), min_size=1, max_size=4).map(
    lambda some: [a_job(number, *demand, priority=priority) for number, (demand, priority) in enumerate(some)]
)


def in_order(queue: Sequence[Waiting]) -> list[Waiting]:
    return [one for priority in (1, 0) for one in queue if one.priority == priority]


# --- whatever the fleet -----------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(queues, nodes(), st.integers(0, 4))
def test_jobs_behind_never_change_the_turns_of_those_in_front(
    queue: list[Waiting], found: list[NodeView], front: int
) -> None:
    line = in_order(queue)
    assert turns(queue, found)[:front] == turns(line[:front], found)


@settings(max_examples=300)
@given(queues, nodes(), demands(1, 2))
def test_those_who_go_find_room_together_beside_those_who_had_their_turn(
    queue: list[Waiting], found: list[NodeView], reserved: list[Machines]
) -> None:
    goes = {turn.job for turn in turns(queue, found, reserved) if turn.admitted}
    admitted = wanted([one for one in queue if one.job in goes])
    if can_place(reserved, left_now(found)):
        assert can_place([*reserved, *admitted], left_now(found))
    assert can_place(admitted, left_now(found))


@settings(max_examples=500)
@given(queues, nodes(), st.sets(st.sampled_from(HOLDERS)))
def test_whatever_ends_next_those_in_front_start_as_if_nobody_behind_had_gone(
    queue: list[Waiting], found: list[NodeView], gone: set[str]
) -> None:
    line, made, left = in_order(queue), turns(queue, found), left_now(ended(found, gone))
    for number, turn in enumerate(made):
        if turn.admitted or not can_place(line[number].demand, left_if_empty(found)):
            continue
        before = [one for one, other in zip(line[:number], made, strict=False) if other.admitted]
        behind = [one for one, other in zip(line[number:], made[number:], strict=True) if other.admitted]
        for front in (before, [one for one in line[:number] if can_place(one.demand, left_if_empty(found))]):
            if can_place(wanted([*front, line[number]]), left):
                assert can_place(wanted([*front, line[number], *behind]), left)


@settings(max_examples=300)
@given(queues, nodes())
def test_places_count_from_one_and_add_up_what_is_in_front(queue: list[Waiting], found: list[NodeView]) -> None:
    line, ahead, position = {one.job: one for one in queue}, 0, 0
    made = turns(queue, found)
    assert [turn.job for turn in made] == [one.job for one in in_order(queue)]
    for turn in made:
        if turn.admitted:
            assert (turn.position, turn.gpus_ahead, turn.estimated_start_at) == (None, None, None)
            continue
        position += 1
        assert (turn.position, turn.gpus_ahead, turn.unknown) == (position, ahead, False)
        ahead += sum(group.count * group.each.gpus for group in line[turn.job].demand)


@settings(max_examples=300)
@given(queues, nodes())
def test_the_first_in_line_goes_whenever_it_fits(queue: list[Waiting], found: list[NodeView]) -> None:
    first = turns(queue, found)[0]
    assert first.admitted == can_place(in_order(queue)[0].demand, left_now(found))


# --- examples ---------------------------------------------------------------------------------------------------------


def test_of_two_that_came_at_once_the_id_decides() -> None:
    two = [a_job(number, machines("a", "h200", 1, 8), came_s=0) for number in (2, 1)]
    assert [(turn.job, turn.admitted) for turn in turns(two, [node("a")])] == [("job-w1", True), ("job-w2", False)]


def test_only_the_first_in_line_is_told_when_it_may_start() -> None:
    full = [node("a", "h200", 8, claim(1, 8))]
    queue = [a_job(number, machines("a", "h200", 1, 8)) for number in range(2)]

    def until(_: HeldGpus) -> datetime | None:
        return HOUR

    made = decide(queue, reserved=[], nodes=fleet(*full), fleet="home", until=until, at=AT)
    assert [turn.estimated_start_at for turn in made] == [HOUR, None]


def test_many_in_front_are_counted_when_one_behind_goes() -> None:
    views = [node("a", "h200", 8, claim(1, 1)), node("b", "b200", 4)]
    queue = [
        *(a_job(number, machines("a", "h200", 1, 8)) for number in range(3)),
        a_job(3, machines("a", "b200", 1, 4)),
    ]
    last = turns(queue, views)[-1]
    assert last.admitted
    assert last.decision == "All its pools fit now, in room that job 0 and 2 more in front of it can't use."


def test_a_pool_without_gpus_also_keeps_its_node() -> None:
    """The one in front waits for CPU of the node, so nothing that would take of it may go."""
    views = [replace(node("a"), used=replace(node("a").used, cpu_millis=60_000))]
    queue = [a_job(1, machines("load", "h200", 1, 0, 16_000)), a_job(2, machines("train", "h200", 1, 1))]
    front, behind = turns(queue, views)
    assert (front.admitted, behind.admitted) == (False, False)
    assert behind.decision == "It would fit, but that would delay job 1 in front of it, which waits for its machines."


def test_those_who_had_their_turn_and_do_not_fit_all_keep_what_they_can() -> None:
    reserved = [machines("a", "h200", 3, 4)]
    [turn] = turns([a_job(1, machines("a", "h200", 1, 1))], [node("a")], reserved)
    assert not turn.admitted


def test_a_closed_node_gives_no_room_and_is_waited_for() -> None:
    [turn] = turns([a_job(1, machines("a", "h200", 1, 8))], [node("a", cordoned=True)])
    assert (turn.admitted, turn.position) == (False, 1)
    assert "a is cordoned" in turn.decision


@pytest.mark.parametrize(("ago_s", "known"), [(60, True), (61, False)])
def test_what_was_heard_more_than_a_minute_ago_decides_nothing(ago_s: int, known: bool) -> None:
    nodes_ = fleet(node("a"), heard_at=AT - timedelta(seconds=ago_s))
    queue = [a_job(1, machines("a", "h200", 1, 1)), a_job(2, machines("a", "h200", 2, 1))]
    made = decide(queue, reserved=[], nodes=nodes_, fleet="home", until=lambda _: None, at=AT)
    assert [(turn.admitted, turn.unknown) for turn in made] == [(known, not known)] * 2
    assert [turn.gpus_ahead for turn in made] == ([None, None] if known else [0, 1])


def test_nobody_waits_in_an_empty_queue() -> None:
    assert turns([], [node("a")]) == []
