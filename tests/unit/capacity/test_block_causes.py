"""Of several things that block GPUs the first in the order of the kinds is the cause, and series tell sums of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings

from starforge.domain.capacity.nodes import UNLABELLED, NodeView, Room
from starforge.domain.capacity.view import (
    BlockCause,
    BlockKind,
    FreeBlock,
    HolderKind,
    holders,
    is_open,
    node_gpus,
    series_gpus,
    why_closed,
)
from starforge.domain.names import PlaygroundId
from tests.unit.capacity.grounds import AT, PLENTY, TAINT, claim, node
from tests.unit.capacity.oracle import nodes

FAULTS: dict[BlockKind, dict[str, object]] = {
    BlockKind.NOT_READY: {"ready": False},
    BlockKind.CORDONED: {"cordoned": True},
    BlockKind.TAINTED: {"taints": (TAINT,)},
    BlockKind.UNHEALTHY: {"allocatable": Room(0) + PLENTY},
    BlockKind.UNLABELLED: {"series": None},
    BlockKind.OTHER: {"used": PLENTY},
}
KINDS = list(BlockKind)


def broken(*kinds: BlockKind) -> NodeView:
    return replace(node("a"), **{key: value for kind in kinds for key, value in FAULTS[kind].items()})  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second"), list(combinations(FAULTS, 2)))
def test_the_first_in_order_is_the_cause(first: BlockKind, second: BlockKind) -> None:
    made = node_gpus(broken(second, first))
    assert [(one.cause, one.gpus, one.nodes) for one in made.causes] == [(first, 8, 1)]
    assert (made.used, made.free, made.blocked) == (0, 0, 8)


def test_the_order_of_the_kinds_is_that_in_which_people_look() -> None:
    assert sorted(FAULTS, key=KINDS.index) == list(FAULTS)


@pytest.mark.parametrize("kind", [BlockKind.UNLABELLED, BlockKind.OTHER])
def test_what_is_well_beside_sick_gpus_has_a_cause_of_its_own(kind: BlockKind) -> None:
    sick = replace(broken(kind), allocatable=Room(5) + PLENTY)
    assert [(one.cause, one.gpus) for one in node_gpus(sick).causes] == [(BlockKind.UNHEALTHY, 3), (kind, 5)]


@pytest.mark.parametrize("kind", [BlockKind.NOT_READY, BlockKind.CORDONED, BlockKind.TAINTED])
def test_a_closed_node_that_is_full_blocks_none_and_is_still_named(kind: BlockKind) -> None:
    full = replace(broken(kind), used=Room(8))
    made = node_gpus(full)
    assert (made.used, made.free, made.blocked) == (8, 0, 0)
    assert [(one.cause, one.gpus) for one in made.causes] == [(kind, 0)]
    assert not is_open(full)
    assert why_closed(full) == made.causes[0].message


@pytest.mark.parametrize("kind", [BlockKind.UNHEALTHY, BlockKind.UNLABELLED, BlockKind.OTHER])
def test_a_node_that_lacks_room_is_open(kind: BlockKind) -> None:
    assert is_open(broken(kind))
    assert why_closed(broken(kind)) is None


@pytest.mark.parametrize("lacking", [Room(0, 64_000), Room(0, 0, 2**40), Room(0, 0, 0, 110)])
def test_a_node_without_cpu_memory_or_pods_has_no_free_gpus(lacking: Room) -> None:
    made = node_gpus(node("a", used=lacking))
    assert (made.free, made.blocked) == (0, 8)
    assert [one.cause for one in made.causes] == [BlockKind.OTHER]


def test_sick_gpus_under_a_pod_are_used_and_those_left_over_are_told_apart() -> None:
    made = node_gpus(node("a", "h200", 8, claim(1, 6), allocatable=Room(5) + PLENTY))
    assert (made.total, made.allocatable, made.used, made.free, made.blocked) == (8, 5, 6, 0, 2)
    assert made.causes == (BlockCause(BlockKind.UNHEALTHY, 2, 1, "2 GPUs of a are there but not healthy."),)


def test_since_is_told_where_it_was_seen() -> None:
    away = node("a", ready=None, ready_changed_at=AT)
    shut = node("b", cordoned=True, cordoned_at=AT + timedelta(seconds=5))
    assert [node_gpus(view).causes[0].since for view in (away, shut, node("c", cordoned=True))] == [
        AT,
        AT + timedelta(seconds=5),
        None,
    ]


# --- series -----------------------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(nodes(5))
def test_every_gpu_is_used_free_or_blocked(found: Sequence[NodeView]) -> None:
    for view in found:
        made = node_gpus(view)
        assert made.total == made.used + made.free + made.blocked
        assert min(made.total, made.allocatable, made.used, made.free, made.blocked) >= 0
        assert made.used == view.used.gpus == sum(held.gpus for held in made.holders)
        assert made.blocked == sum(cause.gpus for cause in made.causes)
        room_for_one_more = (view.allocatable - view.used).holds(Room(1, 1, 1, 1))
        assert bool(made.free) == (is_open(view) and room_for_one_more)
    for one in series_gpus(found):
        assert one.total == one.used + one.free + one.blocked
        assert sum(cause.gpus for cause in one.causes) == one.blocked
        assert sum(block.gpus * block.nodes for block in one.free_blocks) == one.free
        assert one.largest_node == max(node_gpus(view).total for view in found if view.series_name == one.name)


def test_free_blocks_count_nodes_with_as_many_free_gpus_largest_first() -> None:
    views = [node("a"), node("b", "h200", 8, claim(1, 6)), node("c"), node("d", "h200", 8, claim(2, 8))]
    [one] = series_gpus(views)
    assert one.free_blocks == (FreeBlock(8, 2), FreeBlock(2, 1))
    assert (one.largest_free, one.largest_node, one.free) == (8, 8, 18)


def test_causes_of_a_kind_are_one_with_the_earliest_time_and_the_others_counted() -> None:
    shut = [node(f"n{n}", cordoned=True, cordoned_at=AT + timedelta(seconds=9 - n)) for n in range(3)]
    [one] = series_gpus([node("z", ready=False), *shut])
    assert one.causes == (
        BlockCause(
            BlockKind.CORDONED,
            24,
            3,
            "n0 is cordoned. 2 other nodes are blocked alike.",
            AT + timedelta(seconds=7),
        ),
        BlockCause(BlockKind.NOT_READY, 8, 1, "z is not ready."),
    )


def test_series_are_in_name_order_and_so_are_their_nodes() -> None:
    made = series_gpus([node("z"), node("b", "b200"), node("a"), node("c", None)])
    assert [(one.name, one.labelled, [each.view.name for each in one.nodes]) for one in made] == [
        (UNLABELLED, False, ["c"]),
        ("b200", True, ["b"]),
        ("h200", True, ["a", "z"]),
    ]
    assert series_gpus([]) == ()


# --- who holds --------------------------------------------------------------------------------------------------------


def test_pools_of_a_run_are_told_apart_and_the_first_placed_tells_since_when() -> None:
    later = replace(claim(2, 2), since=AT + timedelta(hours=1))
    found = holders([node("a", "h200", 8, later, claim(3, 1, pool="judge")), node("b", "h200", 8, claim(1, 2))])
    assert [(held.pool, held.gpus, held.nodes, held.since) for held in found] == [
        ("train", 4, ("a", "b"), AT),
        ("judge", 1, ("a",), AT),
    ]


def test_a_foreign_pod_whose_namespace_may_not_be_read_has_its_name_only() -> None:
    [held] = holders([node("a", "h200", 8, replace(claim(1, 1, job=None), namespace=None))])
    assert (held.kind, held.name, held.run, held.pool) == (HolderKind.FOREIGN, "pod-1", None, None)


def test_a_playground_is_no_job_and_who_holds_no_gpus_is_not_told() -> None:
    play = replace(claim(1, 1), playground=PlaygroundId("play-1"))
    [held] = holders([node("a", "h200", 8, play, claim(2, 0))])
    assert (held.kind, held.playground, held.run, held.pool) == (HolderKind.PLAYGROUND, "play-1", None, None)
