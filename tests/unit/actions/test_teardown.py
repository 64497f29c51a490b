"""Removal ends a job only when everything is proven gone."""

from collections.abc import Callable
from contextlib import suppress

from starforge.domain.actions.teardown import was_launched
from starforge.domain.job import JobState
from starforge.domain.observation import PodPhase, RunPhase
from starforge.domain.teardown import TeardownState
from starforge.domain.timeline import EventType, TeardownChanged
from tests.unit.actions.fakes import Crash
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
    world.fleet.lasts = 40
    world.settle(60)
    assert world.job(job).state is JobState.FINISHING
    assert EventType.COMMAND_FAILED not in {entry.type for entry in world.entries(job)}
    world.settle(30)
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


def test_an_outage_keeps_the_job_until_it_can_be_proven(world: World) -> None:
    job = world.finishing()
    world.fleet.down = "away"
    world.settle(100)
    assert world.job(job).state is JobState.FINISHING
    assert world.job(job).attempt.logs_archived_at
    world.fleet.down = None
    world.settle(31)
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
        details = [entry.detail for entry in world.entries(job)]
        told = [detail.teardown.state for detail in details if isinstance(detail, TeardownChanged)]
        assert told == [TeardownState.AWAITING_ARCHIVE, TeardownState.DELETING, TeardownState.RELEASED]
