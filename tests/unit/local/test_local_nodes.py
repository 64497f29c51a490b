"""This machine as nodes: one for each series, with what runs on it."""

import platform
from dataclasses import replace

from starforge.adapters.local.nodes import node_views
from starforge.adapters.local.rundir import Phase, Status
from starforge.adapters.local.seeing import seen
from starforge.domain.capacity.nodes import Room
from starforge.domain.capacity.packing import machines_of, open_rooms, place
from tests.unit.local.local_orders import NOON, TRAIN, order, spec, status

GPUS = {"h200": 8, "b200": 4}


def running(phase: Phase = Phase.RUNNING) -> Status:
    return status(phase, admitted_at=NOON.timestamp())


def test_a_machine_of_one_series_has_its_own_name() -> None:
    [one] = node_views({"h200": 8}, [], logical=False)
    assert (one.name, one.series, one.gpus, one.logical) == (platform.node(), "h200", 8, False)
    names = [view.name for view in node_views(GPUS, [], logical=True)]
    assert names == [f"{platform.node()}-h200", f"{platform.node()}-b200"]


def test_machines_are_told_as_the_pods_that_are_shown_of_them() -> None:
    views = node_views(GPUS, [(order(), running())], logical=True)
    told = {(view.name, claim.uid, claim.name, claim.pool, claim.since) for view in views for claim in view.claims}
    pods = seen(order(), running(), NOON).pods
    assert told == {(pod.node_name, pod.uid, pod.name, pod.pool, pod.scheduled_at) for pod in pods}
    assert [view.used for view in views] == [Room(gpus=8, pods=2), Room(gpus=1, pods=1)]


def test_only_runs_that_have_their_place_hold_something() -> None:
    for other in (status(Phase.QUEUED), running(Phase.ENDED)):
        assert not any(view.claims for view in node_views(GPUS, [(order(), other)], logical=True))
    [claim] = node_views(GPUS, [(order(), running(Phase.ENDING))], logical=True)[1].claims
    assert claim.releasing


def test_cpus_and_memory_never_keep_a_run_out() -> None:
    huge = replace(TRAIN, machines=1, gpus_per_machine=8, cpus=10_000, memory="4Ti")
    assert place(machines_of(spec(huge)), open_rooms(node_views(GPUS, [], logical=True))) is not None


def test_a_machine_without_gpus_may_be_of_a_series_that_is_not_there() -> None:
    job = spec(replace(TRAIN, series="cpu", gpus_per_machine=0))
    assert not any(view.claims for view in node_views(GPUS, [(order(job), running())], logical=True))
