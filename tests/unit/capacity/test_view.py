"""What people see of GPUs: each one is used, free or blocked by one cause, and the sums are right."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

from starforge.domain.capacity.nodes import UNLABELLED, GpuSharing, NodeView, Room
from starforge.domain.capacity.view import BlockKind, HolderKind, holders, node_gpus, series_gpus
from starforge.domain.names import PlaygroundId
from tests.unit.capacity.grounds import AT, PLENTY, TAINT, claim, gpu_by_gpu, node, views


@given(views())
def test_every_gpu_is_counted_as_when_one_looks_at_each(found: list[NodeView]) -> None:
    for view in found:
        made, slow = node_gpus(view), Counter(gpu_by_gpu(view))
        blocked = {cause.cause.value: cause.gpus for cause in made.causes if cause.gpus}
        assert {"used": made.used, "free": made.free, **blocked} == {"used": 0, "free": 0, **slow}
        assert made.total == made.used + made.free + made.blocked
        assert min(made.used, made.free, made.blocked) >= 0


@given(views(5))
def test_a_series_is_the_sum_of_its_nodes(found: list[NodeView]) -> None:
    made = series_gpus(found)
    assert [one.name for one in made] == sorted({view.series_name for view in found})
    for one in made:
        nodes = [node_gpus(view) for view in found if view.series_name == one.name]
        assert (one.total, one.used, one.free, one.blocked) == tuple(
            sum(getattr(each, name) for each in nodes) for name in ("total", "used", "free", "blocked")
        )
        assert sum(cause.gpus for cause in one.causes) == one.blocked
        assert sum(block.gpus * block.nodes for block in one.free_blocks) == one.free
        assert one.largest_free == max((each.free for each in nodes), default=0)
        assert sum(held.gpus for held in one.holders) == sum(c.room.gpus for each in nodes for c in each.view.claims)


@pytest.mark.parametrize(
    ("view", "cause", "gpus", "message"),
    [
        (node("a", ready=None, cordoned=True), "NOT_READY", 8, "a does not answer."),
        (node("a", ready=False, ready_message="kubelet is down"), "NOT_READY", 8, "a is not ready: kubelet is down"),
        (node("a", cordoned=True, taints=(TAINT,)), "CORDONED", 8, "a is cordoned."),
        (
            node("a", taints=(TAINT,)),
            "TAINTED",
            8,
            "a has a taint that jobs do not tolerate: example.com/kept=yes:NoSchedule.",
        ),
        (node("a", allocatable=Room(7) + PLENTY), "UNHEALTHY", 1, "1 GPU of a is there but not healthy."),
        (
            node("a", gpus=0),
            "NO_DEVICES",
            0,
            "a has the label of series h200, but its device plugin offers no GPUs.",
        ),
        (node("a", None), "UNLABELLED", 8, "a has no series label, so no job can ask for its GPUs."),
        (
            node("a", allocatable=Room(8, 64_000, 2**40, 0)),
            "OTHER",
            8,
            "a has no room in its number of Pods left for one more Pod.",
        ),
        (node("a", allocatable=Room(8, 0, 2**40, 9)), "OTHER", 8, "a has no CPU left for one more Pod."),
        (node("a", allocatable=Room(8, 100, 0, 9)), "OTHER", 8, "a has no memory left for one more Pod."),
    ],
)
def test_a_block_has_one_cause_and_a_sentence(view: NodeView, cause: str, gpus: int, message: str) -> None:
    [found] = node_gpus(view).causes
    assert (found.cause, found.gpus, found.message) == (BlockKind(cause), gpus, message)


@pytest.mark.parametrize("sharing", list(GpuSharing))
def test_a_label_without_devices_says_where_they_are(sharing: GpuSharing) -> None:
    said = {
        GpuSharing.WHOLE: "its device plugin offers no GPUs.",
        GpuSharing.MIG: "its GPUs are divided into MIG slices with names of their own, which no job can ask for.",
        GpuSharing.TIME_SLICED: "its GPUs are shared in time under another name, which no job can ask for.",
        GpuSharing.DYNAMIC_CLAIMS: "its GPUs are handed out by resource claims, which no job makes.",
    }
    [cause] = node_gpus(node("a", gpus=0, sharing=sharing)).causes
    assert cause.message == f"a has the label of series h200, but {said[sharing]}"


def test_logical_gpus_need_no_devices() -> None:
    assert node_gpus(node("a", gpus=0, logical=True)).causes == ()


def test_pods_may_hold_more_than_is_left_when_devices_are_lost() -> None:
    made = node_gpus(node("a", "h200", 4, claim(1, 6), allocatable=Room(2) + PLENTY))
    assert (made.total, made.used, made.free, made.blocked) == (6, 6, 0, 0)


def test_nodes_without_a_label_are_a_series_of_their_own() -> None:
    [one] = series_gpus([node("a", None)])
    assert (one.name, one.labelled, one.blocked) == (UNLABELLED, False, 8)


def test_who_holds_is_told_by_pool_by_playground_and_by_foreign_pod() -> None:
    playground = replace(claim(5, 2, job=None), playground=PlaygroundId("play-1"))
    found = holders(
        [
            node("a", "h200", 8, claim(1, 4), replace(claim(2, 1), releasing=True)),
            node("b", "h200", 8, claim(3, 4), claim(4, 3, job=None), playground),
        ]
    )
    told = [(held.kind, held.name, held.pool, held.gpus, held.nodes, held.releasing) for held in found]
    assert told == [
        (HolderKind.JOB, None, "train", 9, ("a", "b"), False),
        (HolderKind.FOREIGN, "ns/pod-4", None, 3, ("b",), False),
        (HolderKind.PLAYGROUND, None, None, 2, ("b",), False),
    ]
    assert found[0].since == AT
    assert holders([node("a", "h200", 8, replace(claim(1, 1), releasing=True))])[0].releasing
