"""Cancelling in every state, twice, racing with the end, and what a grace means."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from starforge.domain.actions.cancel import CancelStatus, Wish, cancel, end_now
from starforge.domain.errors import NotFound, WrongState
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import RunPhase
from starforge.domain.ports import StopAnswer
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import ActionRequested, EventType
from tests.unit.actions.fakes import Crash
from tests.unit.actions.world import ANN, World, head


def submitted(world: World) -> JobId:
    return world.submit()


def packaging(world: World) -> JobId:
    world.objects.down = True
    job = world.submit()
    world.work()
    world.objects.down = False
    return job


def launching(world: World) -> JobId:
    world.fleet.down = "away"
    job = world.submit()
    world.work()
    world.fleet.down = None
    return job


EARLY: list[tuple[Callable[[World], JobId], JobState]] = [
    (submitted, JobState.SUBMITTED),
    (packaging, JobState.PACKAGING),
    (launching, JobState.LAUNCHING),
    (World.pending, JobState.PENDING),
]


@pytest.mark.parametrize(("there", "state"), EARLY, ids=[state for _, state in EARLY])
def test_before_it_runs_it_ends_at_once(world: World, there: Callable[[World], JobId], state: JobState) -> None:
    job = there(world)
    assert world.job(job).state is state
    status, after = cancel(world.ports, job, Wish(ANN, "wrong data"))
    assert status is CancelStatus.REQUESTED
    assert after.state is JobState.FINISHING
    assert after.attempt.reason is not None
    assert after.attempt.reason.code is ReasonCode.CANCELED
    assert "wrong data" in after.attempt.reason.message
    world.settle(40)
    assert world.job(job).state is JobState.CANCELED
    assert world.fleet.orders == {}
    assert world.fleet.stops == []
    assert world.states(job)[-2:] == [JobState.FINISHING, JobState.CANCELED]
    assert len(world.due()) == 0


def test_a_command_that_runs_gets_its_grace(world: World) -> None:
    job = world.running()
    status, after = cancel(world.ports, job, Wish(ANN, grace_s=60))
    assert (status, after.state) == (CancelStatus.REQUESTED, JobState.RUNNING)
    assert after.attempt.cancellation is not None
    assert after.attempt.cancellation.grace_until == world.clock.now + timedelta(seconds=60)
    world.settle(59)
    assert world.fleet.stops == [(world.run(job), 60)]
    assert world.job(job).state is JobState.RUNNING
    world.settle(30)
    assert world.job(job).state is JobState.CANCELED
    assert world.fleet.orders == {}


def test_a_command_that_stops_in_time_ends_the_job_with_its_exit_code(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN))
    world.work()
    world.say(job, "bye", world.exit(job, 143))
    world.see(job, RunPhase.STOPPED, head())
    world.work()
    after = world.job(job)
    assert (after.state, after.attempt.exit_code) == (JobState.CANCELED, 143)
    assert after.attempt.outcome is JobOutcome.CANCELED


def test_the_specs_own_grace_counts_when_none_is_given(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN))
    ending = world.job(job).attempt.ending
    assert ending is not None
    assert ending.grace_until == world.clock.now + timedelta(seconds=30)


def test_with_nobody_to_ask_it_ends_now(world: World) -> None:
    job = world.running()
    world.fleet.answer = StopAnswer.NOBODY_TO_ASK
    cancel(world.ports, job, Wish(ANN, grace_s=3600))
    world.work()
    assert world.job(job).attempt.outcome is JobOutcome.CANCELED


def test_a_fleet_that_is_away_does_not_lengthen_the_grace(world: World) -> None:
    job = world.running()
    world.fleet.down = "away"
    cancel(world.ports, job, Wish(ANN, grace_s=5))
    world.settle(10)
    assert world.job(job).attempt.outcome is JobOutcome.CANCELED
    assert world.job(job).state is JobState.FINISHING
    world.fleet.down = None
    world.settle(60)
    assert world.job(job).state is JobState.CANCELED


def test_twice_is_once(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN, "first"))
    status, after = cancel(world.ports, job, Wish(ANN, "second"))
    assert status is CancelStatus.ALREADY_REQUESTED
    assert after.attempt.cancellation is not None
    assert after.attempt.cancellation.note == "first"
    asked = [entry for entry in world.entries(job) if isinstance(entry.detail, ActionRequested)]
    assert len(asked) == 2  # to create it, and to cancel it once


def test_what_has_ended_stays_as_it_ended(world: World) -> None:
    job = world.finishing()
    assert cancel(world.ports, job, Wish(ANN))[0] is CancelStatus.ALREADY_ENDED
    world.settle(5)
    status, after = cancel(world.ports, job, Wish(ANN))
    assert (status, after.state) == (CancelStatus.ALREADY_ENDED, JobState.SUCCEEDED)
    assert after.attempt.cancellation is None


def test_whoever_is_first_in_the_database_wins(new_world: Callable[[], World]) -> None:
    world = new_world()
    job = world.running()
    world.store.interfere = [lambda: world.see(job, RunPhase.SUCCEEDED, head())]
    assert cancel(world.ports, job, Wish(ANN))[0] is CancelStatus.ALREADY_ENDED
    assert world.job(job).attempt.outcome is JobOutcome.SUCCEEDED
    world = new_world()
    job = world.running()
    world.store.interfere = [lambda: cancel(world.ports, job, Wish(ANN))]
    world.see(job, RunPhase.SUCCEEDED, head())
    assert world.job(job).attempt.outcome is JobOutcome.CANCELED


def test_another_attempt_than_the_current_one_is_not_meant(world: World) -> None:
    job = world.pending()
    with pytest.raises(WrongState) as caught:
        cancel(world.ports, job, Wish(ANN, attempt=2))
    assert [problem.field for problem in caught.value.problems] == [("attempt",)]
    assert world.job(job).state is JobState.PENDING
    assert cancel(world.ports, job, Wish(ANN, attempt=1))[0] is CancelStatus.REQUESTED


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Wish(ANN, grace_s=-1), "graceSeconds"),
        (Wish(ANN, grace_s=3601), "graceSeconds"),
        (Wish(ANN, note="x" * 501), "note"),
        (Wish(ANN, note="\0"), "note"),
        (Wish(ANN, note="\udfff"), "note"),
    ],
)
def test_a_wish_that_can_not_be_is_refused(world: World, wish: Wish, field: str) -> None:
    job = world.running()
    with pytest.raises(WrongState) as caught:
        cancel(world.ports, job, wish)
    assert [problem.field for problem in caught.value.problems] == [(field,)]
    assert world.job(job).attempt.cancellation is None


def test_a_job_that_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        cancel(world.ports, JobId("job-nobody"), Wish(ANN))


def test_ending_what_has_no_ending_changes_nothing(world: World) -> None:
    job = world.running()
    end_now(world.ports, RunKey(job, 1))
    assert world.job(job).state is JobState.RUNNING


@pytest.mark.parametrize("answer", StopAnswer)
def test_a_worker_that_dies_anywhere_while_it_stops_changes_nothing(
    new_world: Callable[[], World], answer: StopAnswer
) -> None:
    for at in range(1, 9):
        world = new_world()
        job = world.running()
        world.fleet.answer = answer
        cancel(world.ports, job, Wish(ANN))
        world.say(job, world.exit(job, 143))
        world.faults.count, world.faults.at = 0, at
        with suppress(Crash):
            world.settle(34)
        world.clock.forward(200)
        world.settle(4)
        assert world.job(job).state is JobState.CANCELED
        assert world.states(job).count(JobState.CANCELED) == 1
        assert world.fleet.orders == {}


def test_its_events_are_in_order(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN))
    world.settle(60)
    kinds = [entry.type for entry in world.entries(job)]
    asked = max(index for index, kind in enumerate(kinds) if kind is EventType.ACTION_REQUESTED)
    assert EventType.STATE_CHANGED in kinds[asked:]
    assert world.states(job)[-3:] == [JobState.RUNNING, JobState.FINISHING, JobState.CANCELED]
