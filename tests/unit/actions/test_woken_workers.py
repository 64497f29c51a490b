"""A worker that sleeps for longer than its lease, wherever it is: others do its work, and it changes nothing more."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.perform import LEASE_S
from starforge.domain.job import Job, JobState
from starforge.domain.names import JobId
from starforge.domain.observation import RunPhase
from starforge.domain.timeline import CommandFailed
from tests.unit.actions.killing import Mortal, Sleeper
from tests.unit.actions.world import ANN, World, head

NewWorld = Callable[[], World]
Prepare = Callable[[World], JobId]


@dataclass(frozen=True)
class Left:
    """Everything that a worker can change."""

    job: Job
    head: int
    orders: list[object]
    objects: Mapping[str, bytes]
    commands: list[tuple[object, ...]]


def left(world: World, job: JobId) -> Left:
    with world.sql.database.reading() as connection:
        commands = [tuple(row) for row in connection.exec_driver_sql("SELECT * FROM command ORDER BY id")]
    return Left(
        world.job(job), world.sql.feed_bounds()[1], list(world.fleet.orders), dict(world.objects.objects), commands
    )


def others_end_it(world: World, job: JobId) -> None:
    """The lease runs out; workers, beat and observer bring the job to its end."""
    world.clock.forward(LEASE_S + 1)
    for _ in range(60):
        world.work()
        enforce_deadlines(world.ports)
        found = world.job(job)
        if found.ended and not world.due():
            return
        if found.state is JobState.PENDING:
            world.see(job, RunPhase.RUNNING, head())
            world.say(job, world.exit(job, 0))
            world.see(job, RunPhase.SUCCEEDED, head())
        world.clock.forward(5)
    raise AssertionError("it does not end")


def is_new(world: World) -> JobId:
    return world.submit()


def is_finishing(world: World) -> JobId:
    return world.finishing()


def is_to_stop(world: World) -> JobId:
    job = world.running()
    cancel(world.ports, job, Wish(ANN, grace_s=20))
    return job


def is_canceled(world: World) -> JobId:
    job = world.pending()
    cancel(world.ports, job, Wish(ANN))
    return job


@pytest.mark.parametrize("prepare", [is_new, is_finishing, is_to_stop, is_canceled], ids=lambda one: str(one.__name__))
def test_a_worker_that_wakes_after_its_lease_changes_nothing(new_world: NewWorld, prepare: Prepare) -> None:
    for at in range(1, calls_of(new_world(), prepare) + 1):
        world, sleeper, seen = new_world(), Sleeper(at), list[Left]()
        job = prepare(world)

        def meanwhile(world: World = world, job: JobId = job, seen: list[Left] = seen) -> None:
            others_end_it(world, job)
            seen.append(left(world, job))

        sleeper.meanwhile = meanwhile
        mortal = Mortal(world, sleeper)
        world.work()
        assert sleeper.slept
        assert left(world, job) == seen[0], sleeper.slept
        assert world.fleet.orders == {}, sleeper.slept
        assert set(mortal.created.values()) <= {1, 2}  # the second was removed at once
        assert not [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]


def calls_of(world: World, prepare: Prepare) -> int:
    """How many calls the workers make that do what is due."""
    prepare(world)
    counting = Sleeper(0)
    Mortal(world, counting)
    world.work()
    return counting.count
