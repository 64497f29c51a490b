"""The life of a simulated run: repeatable, and in the words of Kubernetes."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.simulated.driver import lines
from starforge.adapters.simulated.events import events
from starforge.adapters.simulated.picture import picture, remaining
from starforge.adapters.simulated.plan import Outcome, plan
from starforge.adapters.simulated.record import Stop
from starforge.adapters.simulated.timeline import timeline
from starforge.adapters.simulated.world import World
from starforge.domain.observation import ContainerState, PodPhase, PodRole, RunPhase
from starforge.domain.spec import PoolDraft
from tests.unit.simulated.lives import LATER, SMALL, START, life_of, placed, record_of, run_of, spec_of


def test_the_same_seed_gives_the_same_life() -> None:
    one, other = World(seed=7, nodes=SMALL), World(seed=7, nodes=SMALL)
    assert plan(one, run_of(1), spec_of()) == plan(other, run_of(1), spec_of())
    assert repr(picture(life_of(spec_of(), world=one), LATER)) == repr(picture(life_of(spec_of(), world=other), LATER))
    assert plan(one, run_of(1), spec_of()) != plan(World(seed=8, nodes=SMALL), run_of(1), spec_of())


def test_many_runs_have_every_outcome() -> None:
    outcomes = [plan(World(), run_of(number), spec_of()).outcome for number in range(400)]
    assert set(outcomes) == {Outcome.SUCCEED, Outcome.FAIL, Outcome.OOM, Outcome.IMAGE_PULL}
    assert outcomes.count(Outcome.SUCCEED) > 280


def test_phases_follow_one_another() -> None:
    life = life_of(spec_of(Outcome.SUCCEED))
    phases = [picture(life, at).phase for at in life.changes]
    assert list(dict.fromkeys(phases)) == [RunPhase.WAITING, RunPhase.RUNNING, RunPhase.SUCCEEDED]
    assert phases == sorted(phases, key=list(dict.fromkeys(phases)).index)


def test_speed_shortens_everything() -> None:
    slow, fast = (
        life_of(spec_of(Outcome.SUCCEED)),
        life_of(spec_of(Outcome.SUCCEED), world=World(speed=1000, nodes=SMALL)),
    )
    assert slow.end is not None
    assert fast.end is not None
    assert abs((slow.end.at - START) / 1000 - (fast.end.at - START)) < timedelta(milliseconds=1)


def test_pods_go_the_way_of_pods() -> None:
    life = life_of(spec_of(Outcome.SUCCEED))
    head = [next((pod for pod in picture(life, at).pods if pod.role is PodRole.HEAD), None) for at in life.changes]
    assert head[0] is None
    pods = [pod for pod in head if pod is not None]
    assert list(dict.fromkeys(pod.phase for pod in pods)) == [PodPhase.PENDING, PodPhase.RUNNING]
    waits = [pod.containers[0].waiting_reason for pod in pods if pod.phase is PodPhase.PENDING]
    assert "ContainerCreating" in waits
    assert pods[-1].ready
    assert {pod.uid for pod in pods} == {pods[0].uid}
    assert (pods[-1].node_name, pods[-1].gpus, pods[-1].pool, pods[-1].machine) == ("h200-01", 4, "train", 0)


def test_events_of_a_start() -> None:
    life = life_of(spec_of(Outcome.SUCCEED))
    head = life.machines[0].pod
    seen = [event for event in events(life, LATER) if event.object.name == head]
    assert [event.reason for event in seen] == ["Scheduled", "Pulling", "Pulled", "Started"]
    assert not any(event.warning for event in seen)


def test_an_unknown_series_is_told_more_and_more_often() -> None:
    world = World(nodes=SMALL)
    life = timeline(world, record_of(spec_of(pools=(PoolDraft("train", "gb300", 1, 1),))))
    early, late = events(life, START + timedelta(seconds=5)), events(life, START + timedelta(seconds=200))
    assert [event.reason for event in (*early, *late)] == ["FailedScheduling", "FailedScheduling"]
    assert early[0].uid == late[0].uid
    assert early[0].count < late[0].count
    assert late[0].message == "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
    condition = picture(life, LATER).pods[0].conditions[0]
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", False, "Unschedulable")


def test_an_image_that_is_missing_never_starts() -> None:
    life = life_of(spec_of(Outcome.IMAGE_PULL))
    seen = picture(life, LATER)
    assert seen.phase is RunPhase.WAITING
    assert {pod.containers[0].waiting_reason for pod in seen.pods} == {"ImagePullBackOff"}
    assert {"Failed", "BackOff"} < {event.reason for event in events(life, LATER)}
    assert lines(life, LATER) == []


def test_memory_that_ran_out_kills_the_head() -> None:
    seen = picture(life_of(spec_of(Outcome.OOM)), LATER)
    head = next(pod for pod in seen.pods if pod.role is PodRole.HEAD)
    assert seen.phase is RunPhase.FAILED
    assert head.phase is PodPhase.FAILED
    assert head.containers[0].state is ContainerState.TERMINATED
    assert head.containers[0].termination is not None
    assert head.containers[0].termination.oom_killed


def test_deleted_pods_terminate_and_then_are_gone() -> None:
    world = World(nodes=SMALL)
    record = replace(placed(world, record_of(spec_of(Outcome.SUCCEED))), deleted_at=LATER)
    life = timeline(world, record)
    assert life.gone_at is not None
    leaving = picture(life, LATER)
    assert all(pod.terminating and pod.deletion_requested_at == LATER for pod in leaving.pods)
    assert len(remaining(life, LATER)) == 1 + len(leaving.pods)
    assert leaving.phase is RunPhase.SUCCEEDED
    gone = picture(life, life.gone_at)
    assert (gone.phase, gone.pods, remaining(life, life.gone_at)) == (RunPhase.ABSENT, (), ())


@pytest.mark.parametrize("ignores", [True, False])
def test_a_stop_ends_by_signal(ignores: bool) -> None:
    world = World(nodes=SMALL)
    numbers = (number for number in range(100) if plan(world, run_of(number), spec_of()).ignores_sigterm is ignores)
    record = placed(world, record_of(spec_of(Outcome.FOREVER), number=next(numbers)))
    stop = Stop(START + timedelta(seconds=60), START + timedelta(seconds=90))
    end = timeline(world, replace(record, stop=stop)).end
    assert end is not None
    assert (end.phase, end.signal, end.exit_code) == (
        (RunPhase.STOPPED, 9, 137) if ignores else (RunPhase.STOPPED, 15, 143)
    )
    assert end.at == stop.kill_at if ignores else stop.at < end.at < stop.kill_at


@given(
    number=st.integers(1, 40),
    seconds=st.floats(0.1, 400),
    grace=st.integers(0, 30),
    deleted=st.booleans(),
)
def test_what_is_done_to_a_run_never_changes_its_past(number: int, seconds: float, grace: int, deleted: bool) -> None:
    world, at = World(nodes=SMALL), START + timedelta(seconds=seconds)
    record = placed(world, record_of(spec_of(), number=number))
    before = timeline(world, record)
    running = before.started_at is not None and before.started_at <= at and (before.end is None or at < before.end.at)
    if deleted:
        record = replace(record, deleted_at=at)
    elif running:
        record = replace(record, stop=Stop(at, at + timedelta(seconds=grace)))
    after = timeline(world, record)
    told = lines(before, at)
    assert lines(after, LATER)[: len(told)] == told
    earlier = at - timedelta(microseconds=1)
    assert repr(picture(before, earlier)) == repr(picture(after, earlier))
    assert events(before, earlier) == events(after, earlier)
