"""Whether machines fit now, later or never, who would have to end, and in which words it is told."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings

from starforge.domain.capacity.fit import FitVerdict, FleetFit, fit
from starforge.domain.capacity.nodes import NodeView, Room
from starforge.domain.capacity.packing import Machines
from starforge.domain.capacity.view import HeldGpus
from tests.unit.capacity.grounds import (
    AT,
    PLENTY,
    claim,
    demands,
    each_of,
    empty_room,
    fits,
    fleet,
    is_closed,
    machines,
    node,
    open_room,
    views,
)

Until = Callable[[HeldGpus], datetime | None]


def judged(
    demand: list[Machines], *found: NodeView, until: Until = lambda _: None, reserved: tuple[Machines, ...] = ()
) -> FleetFit:
    return fit("home", demand, fleet(*found), reserved=reserved, until=until, at=AT)


@settings(max_examples=300)
@given(demands(), views())
def test_the_verdict_is_that_of_trying_everything(demand: list[Machines], found: list[NodeView]) -> None:
    verdict = judged(demand, *found).verdict
    assert (verdict is FitVerdict.NOW) == (fits(demand, open_room(found)) and fits(demand, empty_room(found)))
    assert (verdict is FitVerdict.NEVER) == (not fits(demand, empty_room(found)))


@settings(max_examples=300)
@given(demands(2), views())
def test_those_who_must_end_are_enough_and_none_of_them_too_many(demand: list[Machines], found: list[NodeView]) -> None:
    must = {one.run or one.name for one in judged(demand, *found).must_end}
    if must:
        assert fits(demand, _left(found, must))
        assert not any(fits(demand, _left(found, must - {one})) for one in must)


def _left(found: list[NodeView], ended: AbstractSet[object]) -> dict[str, tuple[str | None, Room]]:
    rooms = {}
    for view in found:
        if not is_closed(view):
            gone = [one.room for one in view.claims if (one.run or f"ns/{one.name}") in ended]
            rooms[view.name] = (view.series, sum(gone, view.allocatable - view.used))
    return rooms


NEEDS_ONE = "Pool train needs 1 machine with 2 h200 GPUs: 0 of 1 can be placed now "
ENOUGH = "a node with enough free GPUs"
FREE = "(8 of 8 h200 GPUs are free, but "
CORDONED = (
    "Pool train needs 2 machines with 2 b200 GPUs each: 0 of 2 can be placed now (0 of 4 b200 GPUs are free, 4 are "
    "blocked: node-b is cordoned)."
)
TOGETHER = "Pool {} and the others do not fit together, even if fleet home were empty."
A, B = node("node-a"), node("node-b", "b200", 4)


@pytest.mark.parametrize(
    ("demand", "found", "verdict", "message"),
    [
        (
            [machines("train", "h200", 1, 8)],
            [A, B],
            "NOW",
            "Pool train needs 1 machine with 8 h200 GPUs, which fits now.",
        ),
        ([machines("a", "h200", 1, 8), machines("b", "b200", 2, 2)], [A, B], "NOW", "All pools fit now."),
        (
            [machines("train", "b200", 2, 2)],
            [A, node("node-b", "b200", 4, cordoned=True)],
            "LATER",
            CORDONED,
        ),
        (
            [machines("train", "h200", 1, 8)],
            [node("node-a", "h200", 8, claim(1, 6))],
            "LATER",
            "Pool train needs 1 machine with 8 h200 GPUs: 0 of 1 can be placed now (2 of 8 h200 GPUs are free).",
        ),
        (
            [machines("train", "h200", 1, 2, 16_000)],
            [node("node-a", "h200", 8, used=Room(0, 60_000))],
            "LATER",
            f"{NEEDS_ONE}{FREE}a machine needs 16 CPUs, and {ENOUGH} has 4 left at most).",
        ),
        (
            [Machines("train", "h200", 1, Room(2, 100, 2**40, 1))],
            [node("node-a", "h200", 8, used=Room(0, 0, 2**39))],
            "LATER",
            NEEDS_ONE
            + FREE
            + "a machine needs 1Ti of memory, and a node with enough free GPUs has 512Gi left at most).",
        ),
        (
            [machines("train", "h200", 2, 2)],
            [node("node-a", "h200", 8, used=Room(0, 0, 0, 109))],
            "LATER",
            (
                "Pool train needs 2 machines with 2 h200 GPUs each: 1 of 2 can be placed now "
                f"{FREE}their nodes have no room for so many more Pods)."
            ),
        ),
        (
            [machines("train", "h200", 1, 0, 16_000)],
            [node("node-a", "h200", 8, used=Room(0, 60_000))],
            "LATER",
            (
                "Pool train needs 1 machine on a node of series h200: 0 of 1 can be placed now "
                f"{FREE}a machine needs 16 CPUs, and an open node has 4 left at most)."
            ),
        ),
        (
            [machines("a", "h200", 1, 6), machines("b", "h200", 1, 4)],
            [A, node("node-c", "h200", 8, claim(1, 5))],
            "LATER",
            (
                "Pool b needs 1 machine with 4 h200 GPUs: 0 of 1 can be placed now (11 of 16 h200 GPUs are free, "
                "6 of them for machines that come first, 3 at most on one node)."
            ),
        ),
        (
            [machines("train", "gb300", 1, 1)],
            [A, B],
            "NEVER",
            "Pool train needs 1 machine with 1 gb300 GPU, and there is no series gb300: this fleet has b200, h200.",
        ),
        (
            [machines("train", "b200", 1, 8)],
            [A, B],
            "NEVER",
            "Pool train needs 1 machine with 8 b200 GPUs, and the largest b200 node, node-b, has 4.",
        ),
        (
            [machines("train", "b200", 3, 2)],
            [A, B],
            "NEVER",
            "Pool train needs 3 machines with 2 b200 GPUs each, and if all b200 nodes were empty, 2 of them would fit.",
        ),
        (
            [machines("train", "h200", 1, 1, 65_000)],
            [A],
            "NEVER",
            "Pool train needs 1 machine with 1 h200 GPU, and no h200 node has 65 CPUs for one: the most are 64.",
        ),
        (
            [machines("a", "b200", 1, 4), machines("b", "b200", 1, 1)],
            [B],
            "NEVER",
            " ".join(TOGETHER.format(name) for name in "ab"),
        ),
    ],
)
def test_it_is_told_in_numbers_that_decide(
    demand: list[Machines], found: list[NodeView], verdict: str, message: str
) -> None:
    told = judged(demand, *found)
    assert (told.verdict, told.message) == (FitVerdict(verdict), message)


def test_it_starts_when_the_last_of_those_who_must_end_has_to() -> None:
    def until(held: HeldGpus) -> datetime | None:
        return {"job-1": AT + timedelta(hours=1), "job-2": AT + timedelta(hours=2)}[held.run.job if held.run else ""]

    held = node("node-a", "h200", 8, claim(1, 4), claim(2, 4, job="job-2"))
    half = judged([machines("train", "h200", 1, 4)], held, until=until)
    assert ([one.run and one.run.job for one in half.must_end], half.latest_start_at) == (
        ["job-1"],
        AT + timedelta(hours=1),
    )
    whole = judged([machines("train", "h200", 1, 8)], held, until=until)
    assert (len(whole.must_end), whole.latest_start_at) == (2, AT + timedelta(hours=2))
    assert judged([machines("train", "h200", 1, 8)], held).latest_start_at is None


def test_those_who_had_their_turn_come_first() -> None:
    before = machines("other", "h200", 1, 4)
    told = judged([machines("train", "h200", 1, 8)], A, reserved=(before,))
    assert told.verdict is FitVerdict.LATER
    assert "8 of 8 h200 GPUs are free, 4 of them for machines that come first" in told.message
    assert judged([machines("train", "h200", 1, 4)], A, reserved=(before,)).verdict is FitVerdict.NOW


def test_a_gpu_that_is_sick_may_be_well_again() -> None:
    assert (
        judged([machines("train", "h200", 1, 8)], node("a", allocatable=Room(7) + PLENTY)).verdict is FitVerdict.LATER
    )


@pytest.mark.parametrize("heard_at", [None, AT - timedelta(seconds=61)])
def test_nobody_says_anything_of_a_fleet_that_was_not_heard_lately(heard_at: datetime | None) -> None:
    nodes = fleet(A, heard_at=heard_at)
    told = fit("home", [machines("train", "h200", 1, 1)], nodes, until=lambda _: None, at=AT)
    assert told.verdict is FitVerdict.UNKNOWN
    assert "was not heard" in told.message
    assert fit("home", each_of([]), None, until=lambda _: None, at=AT).verdict is FitVerdict.UNKNOWN
