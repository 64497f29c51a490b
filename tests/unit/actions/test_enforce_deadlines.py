"""Each clock, the grace after an outage of the fleet or of ours, and many workers at once."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.enforce_deadlines import enforce, enforce_deadlines
from starforge.domain.actions.hear import hear
from starforge.domain.deadlines import AWAY, OUTAGE_GRACE, Clock, ClockKind, ClockState
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import JobId
from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, PodCondition, PodPhase, RunPhase
from starforge.domain.reason import EvidenceSource, ReasonCode
from starforge.domain.stuck_pods import STORE_AWAY
from starforge.domain.timeline import ClockChanged
from tests.unit.actions.fakes import START, Crash
from tests.unit.actions.world import ANN, World, head, pod, with_limits


def clock_of(world: World, job: JobId, kind: ClockKind) -> Clock:
    return next(clock for clock in world.job(job).attempt.clocks if clock.kind is kind)


def code_of(world: World, job: JobId) -> ReasonCode | None:
    why = world.job(job).attempt.reason
    return why.code if why else None


def test_a_job_that_waits_too_long_for_its_launch_ends(world: World) -> None:
    job = world.submit(with_limits(queue=60))
    world.packer.broken = True  # so that it is tried again and again
    enforce_deadlines(world.ports)
    world.clock.forward(AWAY.total_seconds())
    enforce_deadlines(world.ports)
    world.clock.forward(29)
    enforce_deadlines(world.ports)
    assert world.job(job).attempt.outcome is None
    world.clock.forward(2)
    enforce_deadlines(world.ports)
    assert code_of(world, job) is ReasonCode.QUEUE_DEADLINE
    assert clock_of(world, job, ClockKind.QUEUE).state is ClockState.EXPIRED
    world.settle(5)
    assert world.job(job).state is JobState.FAILED


@pytest.mark.parametrize("down", ["fleet", "objects"])
def test_what_we_need_for_the_launch_being_away_ends_no_job(world: World, down: str) -> None:
    world.fleet.down = "away" if down == "fleet" else None
    world.objects.down = down == "objects"
    job = world.submit(with_limits(queue=60))
    world.settle(200)
    assert world.job(job).attempt.outcome is None
    assert clock_of(world, job, ClockKind.QUEUE).state is ClockState.GRACE
    world.fleet.down, world.objects.down = None, False
    world.settle(31)
    assert world.job(job).state is JobState.PENDING


def test_a_run_that_does_not_start_in_time_ends_and_says_what_held_it(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    full = PodCondition("PodScheduled", False, "Unschedulable", "0/3 nodes are available")
    world.see(job, RunPhase.WAITING, pod("w", phase=PodPhase.PENDING, conditions=(full,)))
    world.settle(66)
    after = world.job(job)
    assert after.state is JobState.FAILED
    why = after.attempt.reason
    assert why is not None
    assert why.code is ReasonCode.PRERUNNING_DEADLINE
    assert "0/3 nodes are available" in why.message
    assert [evidence.source for evidence in why.evidence] == [EvidenceSource.CLOCK, EvidenceSource.POD_CONDITION]
    assert world.fleet.orders == {}


def test_a_run_that_waits_for_the_object_store_ends_with_its_clock(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    fetching = ContainerView("ray-head", ContainerRole.MAIN, "x", ContainerState.WAITING, waiting_reason=STORE_AWAY)
    fetching = replace(fetching, waiting_message="It is away.")
    world.see(job, RunPhase.WAITING, pod("w", phase=PodPhase.PENDING, containers=(fetching,)))
    assert code_of(world, job) is ReasonCode.OBJECT_STORE_UNAVAILABLE
    world.settle(50)
    assert world.job(job).state is JobState.PENDING
    world.settle(16)
    why = world.job(job).attempt.reason
    assert why is not None
    assert (why.code, "It is away." in why.message) == (ReasonCode.PRERUNNING_DEADLINE, True)


def test_a_command_that_runs_too_long_is_asked_to_end_first(world: World) -> None:
    job = world.running(with_limits(active=60))
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.RUNNING, head())
    world.settle(62)
    assert world.job(job).state is JobState.RUNNING
    ((run, grace_s),) = world.fleet.stops
    assert (run, grace_s) == (world.run(job), 30)
    world.say(job, world.exit(job, 143))
    world.see(job, RunPhase.FAILED, head(), message="exit code 143")
    world.settle(5)
    after = world.job(job)
    assert (after.state, code_of(world, job)) == (JobState.FAILED, ReasonCode.ACTIVE_DEADLINE)
    assert after.attempt.exit_code == 143


def test_its_grace_over_it_is_ended(world: World) -> None:
    job = world.running(with_limits(active=60))
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.RUNNING, head())
    world.settle(120)
    assert world.job(job).state is JobState.FAILED
    assert code_of(world, job) is ReasonCode.ACTIVE_DEADLINE


def test_no_clock_no_end(world: World) -> None:
    job = world.pending(with_limits())
    world.settle(5)
    world.clock.forward(1e7)
    assert enforce_deadlines(world.ports) == 0
    assert world.job(job).state is JobState.PENDING
    assert {clock.state for clock in world.job(job).attempt.clocks} == {ClockState.OFF}


def test_a_fleet_that_is_away_gives_a_grace_before_any_end(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    hear(world.ports, "The API server does not answer.", tell=True)
    world.fleet.down = "The API server does not answer."
    world.settle(300)
    assert world.job(job).state is JobState.PENDING
    assert clock_of(world, job, ClockKind.PRE_RUNNING).state is ClockState.GRACE
    world.fleet.down = None
    hear(world.ports, None, tell=True)
    world.see(job, RunPhase.RUNNING, head())
    world.settle(120)
    assert world.job(job).state is JobState.RUNNING
    told = [entry.detail.clock for entry in world.entries(job) if isinstance(entry.detail, ClockChanged)]
    assert [clock.state for clock in told if clock.kind is ClockKind.PRE_RUNNING] == [
        ClockState.RUNNING,
        ClockState.GRACE,
        ClockState.STOPPED,
    ]


def test_a_grace_that_is_over_ends_the_job(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    world.fleet.down = "away"
    world.settle(70)
    world.fleet.down = None
    world.settle(OUTAGE_GRACE.total_seconds())
    assert code_of(world, job) is ReasonCode.PRERUNNING_DEADLINE


def test_after_an_outage_of_ours_there_is_a_grace(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    enforce_deadlines(world.ports)
    world.clock.forward(60 + AWAY.total_seconds())
    enforce_deadlines(world.ports)
    assert world.job(job).state is JobState.PENDING
    assert clock_of(world, job, ClockKind.PRE_RUNNING).due_at == world.clock.now + OUTAGE_GRACE
    world.settle(OUTAGE_GRACE.total_seconds() + 2)
    assert code_of(world, job) is ReasonCode.PRERUNNING_DEADLINE


def test_so_there_is_after_one_that_was_over_before_the_clock_was(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    enforce_deadlines(world.ports)
    world.clock.forward(50)
    back = world.clock.now
    world.settle(OUTAGE_GRACE.total_seconds())
    assert world.job(job).state is JobState.PENDING
    assert clock_of(world, job, ClockKind.PRE_RUNNING).due_at == back + OUTAGE_GRACE
    world.settle(2)
    assert code_of(world, job) is ReasonCode.PRERUNNING_DEADLINE


def test_a_fleet_that_was_away_gives_a_grace_once_it_is_heard_again(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    hear(world.ports, "away", tell=True)
    world.settle(59)
    hear(world.ports, None, tell=True)
    world.settle(OUTAGE_GRACE.total_seconds())
    assert world.job(job).state is JobState.PENDING
    world.settle(2)
    assert code_of(world, job) is ReasonCode.PRERUNNING_DEADLINE


def test_a_fleet_that_was_away_for_a_moment_gives_none(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    enforce_deadlines(world.ports)
    hear(world.ports, "away", tell=True)
    world.settle(AWAY.total_seconds() - 1)
    hear(world.ports, None, tell=True)
    world.settle(33)
    assert code_of(world, job) is ReasonCode.PRERUNNING_DEADLINE


def test_the_end_of_a_grace_waits_for_a_fleet_that_is_away(world: World) -> None:
    """What was asked to stop may have done so long ago: nobody knows, and nothing can be removed."""
    job = world.running(with_limits(active=60))
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.RUNNING, head())
    world.settle(65)
    assert len(world.fleet.stops) == 1
    world.fleet.down = "away"
    world.settle(100)
    assert world.job(job).state is JobState.RUNNING
    world.fleet.down = None
    world.settle(OUTAGE_GRACE.total_seconds() + 31)
    assert world.job(job).state is JobState.FAILED
    assert world.fleet.orders == {}


def test_a_run_that_started_while_nobody_watched_is_not_ended_for_not_starting(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.RUNNING, head())
    world.settle(65)
    assert world.job(job).state is JobState.RUNNING
    assert clock_of(world, job, ClockKind.PRE_RUNNING).state is ClockState.STOPPED


def test_a_run_that_succeeded_while_nobody_watched_has_succeeded(world: World) -> None:
    job = world.running(with_limits(active=60))
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.SUCCEEDED, head())
    world.settle(100)
    assert world.job(job).state is JobState.SUCCEEDED
    assert world.fleet.stops == []


def test_a_cancel_is_not_overtaken_by_a_clock(world: World) -> None:
    job = world.running(with_limits(active=60))
    cancel(world.ports, job, Wish(ANN, grace_s=100))
    world.settle(90)
    assert world.job(job).state is JobState.RUNNING
    world.settle(40)
    assert (world.job(job).state, code_of(world, job)) == (JobState.CANCELED, ReasonCode.CANCELED)


def test_twice_is_once(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    world.clock.forward(61)
    enforce(world.ports, job, since=START)
    revision = world.job(job).revision
    enforce(world.ports, job, since=START)
    assert world.job(job).revision == revision
    assert world.states(job).count(JobState.FINISHING) == 1


def test_two_beats_at_once_are_one(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    world.settle(60)
    world.store.interfere = [lambda: enforce_deadlines(world.ports)]
    enforce_deadlines(world.ports)
    world.settle(5)
    assert world.job(job).state is JobState.FAILED
    assert world.states(job).count(JobState.FINISHING) == 1


def test_a_run_that_starts_in_the_middle_is_not_ended(world: World) -> None:
    job = world.pending(with_limits(pre_running=60))
    world.clock.forward(61)
    world.store.interfere = [lambda: world.see(job, RunPhase.RUNNING, head())]
    enforce(world.ports, job, since=START)
    assert world.job(job).state is JobState.RUNNING
    assert world.job(job).attempt.outcome is None


def test_a_tick_that_dies_is_done_by_the_next(new_world: Callable[[], World]) -> None:
    for at in range(1, 5):
        world = new_world()
        job = world.pending(with_limits(pre_running=60))
        world.settle(60)
        world.faults.count, world.faults.at = 0, at
        try:
            enforce_deadlines(world.ports)
        except Crash:
            enforce_deadlines(world.ports)
        world.faults.at = None
        world.settle(5)
        assert world.job(job).state is JobState.FAILED
        assert world.job(job).attempt.outcome is JobOutcome.FAILED
        assert world.states(job).count(JobState.FINISHING) == 1
