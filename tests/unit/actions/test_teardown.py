"""Removal ends a job only when everything is proven gone."""

from collections.abc import Callable
from contextlib import suppress

from starforge.domain.actions.teardown import was_launched
from starforge.domain.job import JobState
from starforge.domain.names import JobId
from starforge.domain.observation import PodPhase, RunPhase
from starforge.domain.reason import ObjectRef, ReasonCode, reason
from starforge.domain.teardown import RemainingObject, Teardown, TeardownState
from starforge.domain.timeline import EventType, TeardownChanged
from tests.unit.actions.fakes import START, Crash
from tests.unit.actions.world import World, head, pod


def test_it_waits_until_nothing_is_left(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 3
    world.work()
    waiting = world.job(job)
    assert waiting.state is JobState.FINISHING
    assert waiting.attempt.released_at is None
    assert waiting.attempt.teardown is not None
    assert [left.finalizers for left in waiting.attempt.teardown.remaining] == [("a/b",)]
    world.settle(5)
    assert world.job(job).state is JobState.FINISHING
    world.settle(3)
    after = world.job(job)
    assert after.state is JobState.SUCCEEDED
    assert after.attempt.released_at
    assert after.attempt.teardown is not None
    assert after.attempt.teardown.remaining == ()
    assert len(world.fleet.deletes) == 4


def test_looking_again_is_no_failure(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 25
    world.settle(45)
    assert world.job(job).state is JobState.FINISHING
    assert EventType.COMMAND_FAILED not in {entry.type for entry in world.entries(job)}
    world.settle(10)
    assert world.job(job).state is JobState.SUCCEEDED


def test_nothing_new_is_told_while_the_same_is_left(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 10
    world.work()
    before = len(world.feed())
    world.settle(9)
    assert world.job(job).state is JobState.FINISHING
    assert len(world.feed()) == before


def test_its_pods_are_gone_when_it_ends_even_if_nobody_watches(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.RUNNING, head(), pod("w"))
    world.say(job, world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head(), pod("w", phase=PodPhase.SUCCEEDED))
    world.settle(3)
    assert world.job(job).ended
    assert [bool(each.gone_at) for each in world.pods(job)] == [True, True]
    assert not any(each.ready for each in world.pods(job))


def test_a_job_that_was_never_launched_has_nothing_to_remove(world: World) -> None:
    world.packer.broken = True
    job = world.submit()
    world.settle(150)
    assert world.job(job).state is JobState.FAILED
    assert not was_launched(world.job(job))
    assert world.fleet.deletes == []


def removal(world: World, job: JobId) -> Teardown:
    found = world.job(job).attempt.teardown
    assert found is not None
    return found


def told(world: World, job: JobId) -> list[TeardownState]:
    """What the timeline tells of the removal, in order."""
    details = [entry.detail for entry in world.entries(job)]
    return [detail.teardown.state for detail in details if isinstance(detail, TeardownChanged)]


def test_a_finalizer_that_hangs_is_named_once_and_tried_less_and_less_often(world: World) -> None:
    job = world.finishing()
    held = ObjectRef("RayJob", "digits", "training", "uid")
    world.fleet.held[world.run(job)] = RemainingObject(held, START, ("ray.io/rayjob-finalizer",))
    world.settle(59)
    assert removal(world, job).state is TeardownState.DELETING
    world.settle(5)
    blocked = removal(world, job)
    assert blocked.state is TeardownState.BLOCKED
    assert blocked.reason is not None
    assert (blocked.reason.code, blocked.reason.evidence[0].object) == (ReasonCode.TEARDOWN_BLOCKED, held)
    assert "RayJob digits in namespace training is held by finalizer ray.io/rayjob-finalizer" in blocked.reason.message
    assert "operator" in (blocked.reason.advice or "")
    before = len(world.fleet.deletes)
    world.settle(600)
    first, second = len(world.fleet.deletes) - before, len(world.fleet.deletes)
    world.settle(600)
    assert first > len(world.fleet.deletes) - second >= 600 // 60 - 1
    assert removal(world, job).reason == blocked.reason
    del world.fleet.held[world.run(job)]
    world.settle(61)
    assert world.job(job).state is JobState.SUCCEEDED
    assert removal(world, job).reason is None
    states = [TeardownState.AWAITING_ARCHIVE, TeardownState.DELETING, TeardownState.BLOCKED, TeardownState.RELEASED]
    assert told(world, job) == states


def test_the_minute_begins_with_the_removal_not_with_the_end_of_the_command(world: World) -> None:
    job = world.finishing()
    world.fleet.down = "away"
    world.settle(300)
    world.fleet.down, world.fleet.lasts = None, 5
    world.settle(40)
    assert told(world, job)[-3:] == [TeardownState.BLOCKED, TeardownState.DELETING, TeardownState.RELEASED]


def test_a_refusal_is_told_and_tried_again_for_ever(world: World) -> None:
    job = world.finishing()
    no = reason(ReasonCode.PERMISSION, "StarForge may not delete RayJobs.", START, advice="Give it the right.")
    world.fleet.refuses_removal = no
    world.settle(3)
    blocked = removal(world, job)
    assert blocked.state is TeardownState.BLOCKED
    assert blocked.reason is not None
    assert (blocked.reason.code, blocked.reason.advice) == (ReasonCode.TEARDOWN_BLOCKED, "Give it the right.")
    assert no.message in blocked.reason.message
    assert EventType.COMMAND_FAILED not in {entry.type for entry in world.entries(job)}
    world.fleet.refuses_removal = None
    world.settle(5)
    assert world.job(job).state is JobState.SUCCEEDED


def test_an_outage_keeps_the_job_until_it_can_be_proven_and_is_told_if_it_lasts(world: World) -> None:
    job = world.finishing()
    world.fleet.down = "away"
    world.settle(1)
    assert removal(world, job).reason is None
    world.settle(100)
    blocked = removal(world, job)
    assert world.job(job).state is JobState.FINISHING
    assert world.job(job).attempt.logs_archived_at
    assert blocked.state is TeardownState.BLOCKED
    assert blocked.reason is not None
    assert (blocked.reason.code, "away" in blocked.reason.message) == (ReasonCode.TEARDOWN_BLOCKED, True)
    assert told(world, job).count(TeardownState.BLOCKED) == 1
    world.fleet.down, world.fleet.lasts = None, 5
    world.settle(31)
    assert world.job(job).state is not JobState.FINISHING or removal(world, job).state is TeardownState.DELETING
    world.settle(10)
    assert world.job(job).state is JobState.SUCCEEDED


def test_a_worker_that_dies_anywhere_ends_it_once(new_world: Callable[[], World]) -> None:
    calm = new_world()
    calm.finishing()
    start = calm.faults.count
    calm.fleet.lasts = 1
    calm.settle(3)
    for at in range(1, calm.faults.count - start + 1):
        world = new_world()
        job = world.finishing()
        world.fleet.lasts = 1
        world.faults.count, world.faults.at = 0, at
        with suppress(Crash):
            world.settle(3)
        world.clock.forward(200)
        world.settle(3)
        assert world.job(job).state is JobState.SUCCEEDED
        assert told(world, job) == [TeardownState.AWAITING_ARCHIVE, TeardownState.DELETING, TeardownState.RELEASED]
