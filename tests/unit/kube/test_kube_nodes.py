"""Nodes and the Pods on them, as capacity sees them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.series import node_selector, series_of
from starforge.adapters.kube.views.nodes import claim_view, logical_gpus, node_of, node_view
from starforge.adapters.kube.views.pods import pod_views
from starforge.adapters.kube.watch.nodeboard import noted
from starforge.domain.capacity.nodes import GpuSharing, NodeView, Room, Taint
from tests.unit.kube.kube_objects import foreign, node, placed, pod
from tests.unit.kube.kube_orders import AT, RUN

LABEL = "starforge/gpu-series"
SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
GIB = 2**30


def view(found: KubeObject, *pods: KubeObject, logical: int | None = None) -> NodeView | None:
    return node_view(noted(found), [claim_view(each) for each in pods], label=LABEL, logical=logical)


def seen(found: KubeObject, *pods: KubeObject, logical: int | None = None) -> NodeView:
    told = view(found, *pods, logical=logical)
    assert told is not None
    return told


def test_a_node_as_it_is() -> None:
    assert seen(node(labels={"nvidia.com/gpu.product": "NVIDIA-H200"})) == NodeView(
        name="node-a",
        series="h200",
        gpus=8,
        allocatable=Room(8, 31_500, 64 * GIB, 110),
        ready_changed_at=SINCE,
        product="NVIDIA-H200",
    )


def test_the_selector_of_a_pool_is_what_tells_the_series() -> None:
    labelled = {"metadata": {"labels": {**node_selector(LABEL, "h200"), "other": "x"}}}
    assert series_of(labelled, LABEL) == "h200"
    assert series_of({"metadata": {"labels": {LABEL: ""}}}, LABEL) is None
    assert series_of({"metadata": {}}, LABEL) is None


@pytest.mark.parametrize(
    ("found", "series", "gpus"),
    [
        (node(), "h200", 8),
        (node(gpus=0), "h200", 0),
        (node(series=None), None, 8),
        (node(series=None, gpus=0, offers={"nvidia.com/mig-1g.10gb": "7"}), None, 0),
    ],
    ids=["labelled", "a label without devices", "devices without a label", "slices without a label"],
)
def test_nodes_with_a_label_or_with_gpus_are_told(found: KubeObject, series: str | None, gpus: int) -> None:
    told = seen(found)
    assert (told.series, told.gpus, told.allocatable.gpus) == (series, gpus, gpus)


def test_other_nodes_are_not() -> None:
    assert view(node(series=None, gpus=0)) is None
    assert view(node(series=None, gpus=0, offers={"nvidia.com/mig-1g.10gb": "0"})) is None


def test_gpus_that_are_ill_are_there_and_not_given() -> None:
    told = seen(node(healthy=6))
    assert (told.gpus, told.allocatable.gpus) == (8, 6)


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", None)])
def test_whether_it_is_ready(status: str, ready: bool | None) -> None:
    told = seen(node(ready=status))
    message = None if ready else f"it is {status}"
    assert (told.ready, told.ready_message, told.ready_changed_at) == (ready, message, SINCE)


def test_a_node_that_has_not_said_anything_yet_does_not_answer() -> None:
    bare = {"metadata": {"name": "new", "labels": {LABEL: "h200"}}}
    told = seen(bare)
    assert (told.ready, told.ready_changed_at, told.allocatable) == (None, None, Room())


def test_a_cordon_and_since_when() -> None:
    told = seen(node(cordoned=True))
    assert (told.cordoned, told.cordoned_at, told.taints) == (True, SINCE, ())
    lifted = node(cordoned=True)
    del lifted["spec"]["unschedulable"]
    assert (seen(lifted).cordoned, seen(lifted).cordoned_at) == (False, None)


def test_taints_that_keep_pods_off_but_those_that_ready_and_cordon_stand_for() -> None:
    taints = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "out-of-service", "effect": "NoExecute"},
        {"key": "rather-not", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
    ]
    assert seen(node(taints=taints)).taints == (
        Taint("nvidia.com/gpu", "present", "NoSchedule"),
        Taint("out-of-service", None, "NoExecute"),
    )


@pytest.mark.parametrize(
    ("labels", "offers", "sharing"),
    [
        ({}, {}, GpuSharing.WHOLE),
        ({}, {"nvidia.com/mig-1g.10gb": "7"}, GpuSharing.MIG),
        ({"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "H200-MIG-1g.18gb"}, {}, GpuSharing.MIG),
        ({"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "H200"}, {}, GpuSharing.WHOLE),
        ({}, {"nvidia.com/gpu.shared": "32"}, GpuSharing.TIME_SLICED),
        ({"nvidia.com/gpu.replicas": "4"}, {}, GpuSharing.TIME_SLICED),
        ({"nvidia.com/gpu.replicas": "1"}, {}, GpuSharing.WHOLE),
        ({}, {"nvidia.com/mig-1g.10gb": "0", "nvidia.com/gpu.shared": "0"}, GpuSharing.WHOLE),
    ],
)
def test_how_gpus_are_shared(labels: dict[str, str], offers: dict[str, str], sharing: GpuSharing) -> None:
    assert seen(node(labels=labels, offers=offers)).sharing is sharing


def test_all_pods_count_and_those_with_gpus_or_of_ours_are_named() -> None:
    ours, theirs, small = placed(pod("b"), gpus=2), foreign("a", gpus=3), foreign("c")
    told = seen(node(), ours, theirs, small)
    assert told.used == Room(5, 3000, 3 * GIB, 3)
    assert [(claim.uid, claim.namespace, claim.run, claim.pool, claim.room.gpus) for claim in told.claims] == [
        ("a", "theirs", None, None, 3),
        ("b", "ns", RUN, "train", 2),
    ]


def test_a_machine_without_gpus_is_named_and_a_submitter_is_not() -> None:
    machine, submitter = placed(pod("a")), placed(pod("b"))
    del submitter["metadata"]["labels"]["starforge.io/pool"]
    told = seen(node(), machine, submitter)
    assert ([claim.uid for claim in told.claims], told.used.pods) == (["a"], 2)


def test_a_pod_that_is_asked_to_go_holds_what_it_has_until_it_is_gone() -> None:
    leaving = placed(pod("a"), gpus=2)
    leaving["metadata"]["deletionTimestamp"] = "2026-11-29T12:05:00Z"
    [claim] = seen(node(), leaving).claims
    assert (claim.releasing, claim.room.gpus, claim.since) == (True, 2, SINCE)


def test_a_playground_is_named() -> None:
    found = placed(pod("a"), gpus=1)
    found["metadata"]["labels"] = {"starforge.io/managed": "true", "starforge.io/playground": "pg-1"}
    claim = claim_view(found)
    assert (claim.run, claim.playground, claim.pool) == (None, "pg-1", None)


@pytest.mark.parametrize(("phase", "on"), [("Running", "node-a"), ("Pending", "node-a"), ("Succeeded", None)])
def test_where_a_pod_counts(phase: str, on: str | None) -> None:
    found = placed(pod("a"))
    found["status"]["phase"] = phase
    assert node_of(found) == on
    assert node_of(placed(pod("b"), None)) is None


def with_gpus(found: Any, gpus: str) -> Any:
    found["metadata"]["annotations"]["starforge.io/gpus"] = gpus
    return found


def test_logical_gpus_are_those_of_the_setting_and_of_what_machines_say() -> None:
    told = seen(node(gpus=0), logical=4)
    assert (told.gpus, told.allocatable.gpus, told.logical) == (4, 4, True)
    assert view(node(series=None), logical=4) is None
    assert [logical_gpus(each) for each in (with_gpus(pod("a"), "2"), pod("b"), with_gpus(foreign("c"), "9"))] == [
        2, 0, 0,
    ]  # fmt: skip


def test_a_pod_shows_the_gpus_that_it_asks_for_and_no_logical_ones() -> None:
    found = [with_gpus(placed(pod("a")), "2"), placed(pod("b"), gpus=3)]
    assert [each.gpus for each in pod_views(found, {}, AT)] == [0, 3]
