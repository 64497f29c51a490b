"""Cancelling in every state, twice, racing with the end, and what a grace means."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from starforge.domain.actions.cancel import NOBODY, CancelStatus, Wish, cancel, end_now
from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.hear import hear
from starforge.domain.errors import FleetRefused, NotFound, WrongState
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import RunPhase
from starforge.domain.ports import StopAnswer
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.timeline import ActionRequested, CommandFailed, EventType, Severity
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


def test_with_nobody_to_ask_it_ends_now_and_says_so(world: World) -> None:
    job = world.running()
    world.fleet.answer = StopAnswer.NOBODY_TO_ASK
    cancel(world.ports, job, Wish(ANN, grace_s=3600))
    world.work()
    assert world.job(job).attempt.outcome is JobOutcome.CANCELED
    assert [entry.severity for entry in world.entries(job) if entry.message == NOBODY] == [Severity.WARNING]
    world.settle(30)
    assert world.job(job).state is JobState.CANCELED
    assert world.fleet.orders == {}


def test_a_fleet_that_lets_nobody_ask_is_no_reason_to_wait(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.running()
    why = reason(ReasonCode.PERMISSION, "Nobody may ask.", world.clock.now)

    def refuses(run: RunKey, *, grace_s: int) -> StopAnswer:
        raise FleetRefused(why)

    monkeypatch.setattr(world.fleet, "stop", refuses)
    cancel(world.ports, job, Wish(ANN, grace_s=3600))
    world.settle(30)
    assert world.job(job).state is JobState.CANCELED
    assert any("Nobody may ask." in entry.message for entry in world.entries(job))


def test_a_fleet_that_is_away_is_waited_for_and_the_grace_begins_then(world: World) -> None:
    job = world.running()
    hear(world.ports, "The API server does not answer.", tell=True)
    world.fleet.down = "The API server does not answer."
    assert cancel(world.ports, job, Wish(ANN, grace_s=5))[0] is CancelStatus.REQUESTED
    world.settle(300)
    held = world.job(job)
    assert (held.state, held.attempt.outcome) == (JobState.RUNNING, None)
    assert held.attempt.stale_problem == "The API server does not answer."
    (failed,) = [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]
    assert failed.message == "CANCEL is tried again: The API server does not answer."
    assert cancel(world.ports, job, Wish(ANN, grace_s=5))[0] is CancelStatus.ALREADY_REQUESTED
    world.fleet.down = None
    hear(world.ports, None, tell=True)
    world.settle(31)
    assert world.fleet.stops == [(world.run(job), 5)]
    world.settle(30)
    after = world.job(job)
    assert after.state is JobState.CANCELED
    assert after.attempt.cancellation is not None
    assert after.attempt.cancellation.grace_until is not None
    assert after.attempt.cancellation.grace_until > world.clock.now - timedelta(seconds=62)
    assert world.fleet.orders == {}


def test_a_run_that_ends_while_its_fleet_is_away_has_ended_as_canceled(world: World) -> None:
    job = world.running()
    world.fleet.down = "away"
    cancel(world.ports, job, Wish(ANN, grace_s=5))
    world.settle(100)
    world.fleet.down = None
    world.say(job, "bye", world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    world.settle(40)
    after = world.job(job)
    assert (after.state, after.attempt.exit_code) == (JobState.CANCELED, 0)
    assert [line.text for line in world.log(job)] == ["bye"]
    assert world.fleet.stops == []


def test_workers_that_are_away_cost_no_grace(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN, grace_s=30))
    world.clock.forward(600)
    enforce_deadlines(world.ports)
    assert world.job(job).state is JobState.RUNNING
    world.settle(29)
    assert world.fleet.stops == [(world.run(job), 30)]
    assert world.job(job).state is JobState.RUNNING
    world.settle(30)
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


def test_its_events_are_in_order(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN))
    world.settle(60)
    kinds = [entry.type for entry in world.entries(job)]
    asked = max(index for index, kind in enumerate(kinds) if kind is EventType.ACTION_REQUESTED)
    assert EventType.STATE_CHANGED in kinds[asked:]
    assert world.states(job)[-3:] == [JobState.RUNNING, JobState.FINISHING, JobState.CANCELED]
