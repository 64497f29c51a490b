"""Verdicts where CPU, memory and Pods run out as well, beside machines that had their turn, and who must end for it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings

from starforge.domain.capacity.ending import enough, who_could_end
from starforge.domain.capacity.fit import MUST_END_MAX, FitVerdict, FleetFit, fit
from starforge.domain.capacity.nodes import Claim, NodeView, Room
from starforge.domain.capacity.packing import Machines, open_rooms, place
from starforge.domain.capacity.view import HeldGpus, HolderKind, is_open
from starforge.domain.names import PlaygroundId
from tests.unit.capacity.grounds import AT, PLENTY, claim, fleet, machines, node
from tests.unit.capacity.oracle import (
    HOLDERS,
    can_place,
    demands,
    ended,
    left_if_empty,
    left_now,
    most_of,
    nodes,
)

ENDS = {job: AT + timedelta(hours=number) for number, job in enumerate(HOLDERS, 1)}
A = node("node-a")


def by_clock(held: HeldGpus) -> datetime | None:
    return ENDS.get(held.run.job) if held.run else None


def judged(demand: Sequence[Machines], views: Sequence[NodeView], reserved: Sequence[Machines] = ()) -> FleetFit:
    return fit("home", demand, fleet(*views), reserved=reserved, until=by_clock, at=AT)


# --- whatever the fleet -----------------------------------------------------------------------------------------------


@settings(max_examples=500)
@given(demands(), nodes())
def test_the_verdict_is_that_of_trying_every_way(demand: list[Machines], found: list[NodeView]) -> None:
    now, ever = can_place(demand, left_now(found)), can_place(demand, left_if_empty(found))
    expected = FitVerdict.NOW if now else FitVerdict.LATER if ever else FitVerdict.NEVER
    assert judged(demand, found).verdict is expected


@settings(max_examples=300)
@given(demands(), nodes())
def test_of_the_first_pool_as_many_are_placeable_as_there_is_room_for(
    demand: list[Machines], found: list[NodeView]
) -> None:
    told = judged(demand, found)
    assert [pool.pool for pool in told.pools] == [group.pool for group in demand]
    if told.verdict is not FitVerdict.NEVER:
        assert told.pools[0].placeable == most_of(demand[0], left_now(found))
    for pool, group in zip(told.pools, demand, strict=True):
        assert (pool.placeable == group.count) == (pool.verdict is FitVerdict.NOW)
        assert bool(pool.nodes) == bool(pool.placeable)


@settings(max_examples=300)
@given(demands(), demands(2, 2), nodes())
def test_what_fits_beside_those_who_had_their_turn_fits_together_with_them(
    demand: list[Machines], reserved: list[Machines], found: list[NodeView]
) -> None:
    if not can_place(reserved, left_now(found)):
        return
    if judged(demand, found, reserved).verdict is FitVerdict.NOW:
        assert can_place([*reserved, *demand], left_now(found))


@settings(max_examples=500)
@given(demands(2), nodes())
def test_the_jobs_that_must_end_are_enough_and_not_one_too_many(demand: list[Machines], found: list[NodeView]) -> None:
    told = judged(demand, found)
    gone = {held.run.job for held in told.must_end if held.run}
    if not told.must_end or any(held.kind is HolderKind.FOREIGN for held in told.must_end):
        return
    assert can_place(demand, left_now(ended(found, gone)))
    assert not any(can_place(demand, left_now(ended(found, gone - {one}))) for one in gone)
    last = max(ENDS[job] for job in gone)
    assert told.latest_start_at == last
    sooner = {one.run.job for one in _seen_to_hold(found) if one.run and ENDS[one.run.job] < last}
    assert not can_place(demand, left_now(ended(found, sooner)))


def _seen_to_hold(views: Sequence[NodeView]) -> list[Claim]:
    return [one for view in views if is_open(view) for one in view.claims if one.room.gpus]


@settings(max_examples=300)
@given(demands(2), nodes(closed=False))
def test_somebody_is_named_whenever_all_who_hold_gpus_would_be_enough(
    demand: list[Machines], found: list[NodeView]
) -> None:
    told = judged(demand, found)
    holds = {one.run.job for view in found for one in view.claims if one.run and one.room.gpus}
    if told.verdict is FitVerdict.LATER and can_place(demand, left_now(ended(found, holds))):
        assert told.must_end


# --- examples ---------------------------------------------------------------------------------------------------------


def test_who_is_asked_to_go_is_named_before_those_who_end_later() -> None:
    going = replace(claim(1, 4, job="job-3"), releasing=True)
    told = judged([machines("a", "h200", 1, 4)], [node("a", "h200", 8, going, claim(2, 4, job="job-1"))])
    assert [held.run and held.run.job for held in told.must_end] == ["job-3"]
    assert told.must_end[0].releasing


def test_all_pools_of_a_run_end_together() -> None:
    held = node("a", "h200", 8, claim(1, 4, pool="train"), claim(2, 4, pool="judge"))
    told = judged([machines("a", "h200", 1, 4)], [held])
    assert sorted(one.pool or "" for one in told.must_end) == ["judge", "train"]


def test_nobody_knows_when_a_foreign_pod_or_a_playground_ends() -> None:
    play = replace(claim(1, 8, job=None), playground=PlaygroundId("play-1"))
    for one, kind in ((play, HolderKind.PLAYGROUND), (claim(1, 8, job=None), HolderKind.FOREIGN)):
        told = judged([machines("a", "h200", 1, 8)], [node("a", "h200", 8, one)])
        assert ([held.kind for held in told.must_end], told.latest_start_at) == ([kind], None)


def test_not_more_are_named_than_a_person_reads() -> None:
    full = [node(f"n{n:02}", "h200", 8, claim(n, 8, job=f"job-{n}")) for n in range(MUST_END_MAX + 5)]
    told = judged([machines("a", "h200", len(full), 8)], full)
    assert len(told.must_end) == MUST_END_MAX


def _held_singly(number: int) -> NodeView:
    """A node where eight jobs hold one GPU each."""
    ours = range(number * 8, number * 8 + 8)
    return node(f"n{number:02}", "h200", 8, *(claim(one, 1, job=f"job-{one}") for one in ours))


def test_of_many_who_hold_small_parts_enough_are_named_though_not_all_were_asked_about() -> None:
    """Each of 60 nodes takes either two machines of 4 or one of 5, and everybody on it has to go for that."""
    full = [_held_singly(number) for number in range(60)]
    demand = [machines("a", "h200", 20, 5), machines("b", "h200", 20, 4)]
    ending = enough(demand, open_rooms(full), who_could_end(full, by_clock))
    assert ending is not None
    gone = {str(held.run.job) for held in ending.held if held.run}
    assert place(demand, open_rooms(ended(full, gone))) is not None


def test_of_one_kind_of_machine_nobody_is_named_too_many_also_of_hundreds() -> None:
    full = [_held_singly(number) for number in range(60)]
    demand = [machines("a", "h200", 30, 5)]
    ending = enough(demand, open_rooms(full), who_could_end(full, by_clock))
    assert ending is not None
    assert len(ending.held) == 30 * 5


def test_where_nobodys_end_helps_the_closed_nodes_are_named_a_few_at_most() -> None:
    shut = [node(f"n{n}", cordoned=True) for n in range(5)]
    told = judged([machines("a", "h200", 5, 8)], shut)
    assert (told.verdict, told.must_end, told.latest_start_at) == (FitVerdict.LATER, (), None)
    assert told.message == (
        "Pool a needs 5 machines with 8 h200 GPUs each: 0 of 5 can be placed now (0 of 40 h200 GPUs are free, 40 are "
        "blocked: n0 is cordoned. 4 other nodes are blocked alike). n1 is cordoned. n2 is cordoned. n3 is cordoned."
    )


def test_the_pools_of_one_that_fits_are_told_their_nodes() -> None:
    told = judged([machines("a", "h200", 2, 4), machines("b", "b200", 1, 1)], [A, node("node-b", "b200", 4)])
    assert [(pool.pool, pool.placeable, pool.nodes) for pool in told.pools] == [
        ("a", 2, ("node-a",)),
        ("b", 1, ("node-b",)),
    ]
    assert told.pools[0].message == "Pool a needs 2 machines with 4 h200 GPUs each, which fit now."
    assert told.observed_at == AT


def test_beside_a_pool_that_fits_nowhere_the_others_are_judged() -> None:
    told = judged([machines("a", "h200", 1, 8), machines("b", "h200", 1, 9)], [A])
    assert [pool.verdict for pool in told.pools] == [FitVerdict.NOW, FitVerdict.NEVER]
    assert told.message == "Pool b needs 1 machine with 9 h200 GPUs, and the largest h200 node, node-a, has 8."


@pytest.mark.parametrize(
    ("demand", "views", "message"),
    [
        (
            Machines("a", "h200", 1, Room(1, 100, 2**41, 1)),
            [A],
            "Pool a needs 1 machine with 1 h200 GPU, and no h200 node has 2Ti of memory for one: the most is 1Ti.",
        ),
        (
            machines("a", "h200", 1, 1),
            [],
            "Pool a needs 1 machine with 1 h200 GPU, and there is no series h200: this fleet has none.",
        ),
        (
            machines("a", "h200", 3, 0, 40_000),
            [A],
            "Pool a needs 3 machines on nodes of series h200, and if all h200 nodes were empty, 1 of them would fit.",
        ),
    ],
)
def test_why_it_never_fits(demand: Machines, views: list[NodeView], message: str) -> None:
    told = judged([demand], views)
    assert (told.verdict, told.message, told.must_end) == (FitVerdict.NEVER, message, ())


def test_a_node_out_of_cpu_is_waited_for_though_its_gpus_are_idle() -> None:
    told = judged([machines("a", "h200", 1, 1)], [node("a", used=PLENTY)])
    assert told.verdict is FitVerdict.LATER
    assert "8 are blocked: a has no room in its number of Pods left for one more Pod" in told.message


@pytest.mark.parametrize("heard_at", [AT - timedelta(seconds=61), AT - timedelta(days=1)])
def test_what_was_heard_too_long_ago_says_since_when(heard_at: datetime) -> None:
    told = fit("home", [machines("a", "h200", 1, 1)], fleet(A, heard_at=heard_at), until=by_clock, at=AT)
    since = f"{heard_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    assert told.message == f"Fleet home was not heard since {since}, so nobody can say whether it has room."
    assert [(pool.verdict, pool.placeable) for pool in told.pools] == [(FitVerdict.UNKNOWN, 0)]
    assert told.observed_at == heard_at


def test_what_was_heard_a_minute_ago_still_counts_and_never_heard_is_said() -> None:
    heard = fleet(A, heard_at=AT - timedelta(seconds=60))
    demand = [machines("a", "h200", 1, 1)]
    assert fit("home", demand, heard, until=by_clock, at=AT).verdict is FitVerdict.NOW
    never = fit("home", demand, None, until=by_clock, at=AT)
    assert never.message == "Fleet home was not heard so far, so nobody can say whether it has room."
