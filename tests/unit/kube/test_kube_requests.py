"""What a Pod takes of its node, as the scheduler counts it."""

from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.kube.views.requests import parse_quantity, requests
from starforge.domain.capacity.nodes import Room

GIB = 2**30


def box(cpu: str = "0", memory: str = "0", gpus: int = 0, *, name: str = "main", sidecar: bool = False) -> Any:
    asked = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"name": name, "resources": {"requests": asked}, **({"restartPolicy": "Always"} if sidecar else {})}


def has(name: str, cpu: str, *, allocated: str | None = None) -> Any:
    """A status of a container that was given some CPU, as its cgroup and the kubelet's books have it."""
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": allocated or cpu}}


def pod(*boxes: Any, init: Any = (), spec: Any = None, **status: Any) -> Any:
    inside = {"containers": list(boxes), "initContainers": list(init), **(spec or {})}
    return {"metadata": {"uid": "a", "name": "a"}, "spec": inside, "status": status}


def cpus(cores: float, *, memory: int = 0, gpus: int = 0) -> Room:
    return Room(gpus, int(cores * 1000), memory, 1)


REFUSED = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
LIMITED = {"name": "main", "resources": {"limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "4"}}}
BOTH = {"name": "main", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "8", "memory": "2Gi"}}}
sidecar = partial(box, name="s", sidecar=True)

CASES: dict[str, tuple[Any, Room]] = {
    "nothing": (pod({"name": "main"}), cpus(0)),
    "containers add up": (pod(box("1", "1Gi", 2), box("500m", "1Gi", 1)), cpus(1.5, memory=2 * GIB, gpus=3)),
    "limits stand in for requests": (pod(LIMITED), cpus(2, memory=GIB, gpus=4)),
    "requests go before limits": (pod(BOTH), cpus(1, memory=2 * GIB)),
    "a small init container is absorbed": (pod(box("1"), init=[box("200m", "256Mi")]), cpus(1, memory=GIB // 4)),
    "the largest init container": (pod(box("1"), init=[box("4"), box("3")]), cpus(4)),
    "each resource has a largest of its own": (
        pod(box("1", gpus=8), init=[box("4", gpus=1), box("2", "1Gi")]),
        cpus(4, memory=GIB, gpus=8),
    ),
    "sidecars run beside containers": (pod(box("1"), init=[sidecar("500m")]), cpus(1.5)),
    "sidecars run beside init containers after them": (
        pod(box("1"), init=[sidecar("500m"), box("4")]),
        cpus(4.5),
    ),
    "not beside those before": (pod(box("1"), init=[box("4"), sidecar("500m")]), cpus(4)),
    "overhead": (pod(box("1"), spec={"overhead": {"cpu": "250m", "memory": "1Gi"}}), cpus(1.25, memory=GIB)),
    "the Pod's own requests win for CPU and memory": (
        pod(box("1", "1Gi", 2), spec={"resources": {"requests": {"cpu": "6", "nvidia.com/gpu": "9"}}}),
        cpus(6, memory=GIB, gpus=2),
    ),
    "and overhead comes on top of them": (
        pod(box("1"), spec={"resources": {"requests": {"cpu": "6"}}, "overhead": {"cpu": "1"}}),
        cpus(7),
    ),
    "a resize up counts at once": (pod(box("4"), containerStatuses=[has("main", "2")]), cpus(4)),
    "a resize down counts once it is done": (pod(box("1"), containerStatuses=[has("main", "2")]), cpus(2)),
    "what the kubelet has set aside": (pod(box("1"), containerStatuses=[has("main", "1", allocated="3")]), cpus(3)),
    "a deferred resize counts": (pod(box("9"), containerStatuses=[has("main", "2")], conditions=DEFERRED), cpus(9)),
    "an infeasible one does not": (pod(box("9"), containerStatuses=[has("main", "2")], conditions=REFUSED), cpus(2)),
    "a resized sidecar": (
        pod(box("1"), init=[sidecar("1")], initContainerStatuses=[has("s", "3")]),
        cpus(4),
    ),
    "an init container can't be resized": (
        pod(box("1"), init=[box("1", name="i")], initContainerStatuses=[has("i", "3")]),
        cpus(1),
    ),
    "less than a thousandth is a whole one": (pod(box("1500u", "1500m")), Room(0, 2, 2, 1)),
}


@pytest.mark.parametrize(("found", "room"), CASES.values(), ids=CASES)
def test_counts_as_the_scheduler_does(found: Any, room: Room) -> None:
    assert requests(found) == room


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"), ("2", "2"), ("1.5", "1.5"), (".5", "0.5"), ("100m", "0.1"), ("7910m", "7.91"), ("1k", "1000"),
        ("16394372Ki", str(16394372 * 1024)), ("2Gi", str(2 * GIB)), ("1E", "1e18"), ("1Ei", str(2**60)),
        ("1e3", "1000"), ("12E2", "1200"), ("5n", "5e-9"), ("7u", "7e-6"), (3, "3"),
    ],
)  # fmt: skip
def test_quantities(text: str | int, amount: str) -> None:
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "many", "1Gi2"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)


def reference(boxes: list[tuple[int, bool]], init: list[tuple[int, bool]]) -> int:
    """The most that ever runs at once, step by step."""
    steps, beside = [], 0
    for cpu, is_sidecar in init:
        beside += cpu if is_sidecar else 0
        steps.append(beside if is_sidecar else beside + cpu)
    return max([*steps, beside + sum(cpu for cpu, _ in boxes)])


some = st.lists(st.tuples(st.integers(0, 64), st.booleans()), max_size=5)


@given(some, some)
def test_it_is_the_most_that_ever_runs_at_once(boxes: list[tuple[int, bool]], init: list[tuple[int, bool]]) -> None:
    first = [box(str(cpu), name=f"i{n}", sidecar=aside) for n, (cpu, aside) in enumerate(init)]
    found = pod(*(box(str(cpu), name=f"c{n}") for n, (cpu, _) in enumerate(boxes)), init=first)
    assert requests(found) == cpus(reference(boxes, init))
