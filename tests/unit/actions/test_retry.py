from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from starforge.domain.actions import retry as module
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.perform import LEASE_S, perform
from starforge.domain.actions.retry import Again, Retried, can_be_retried, retry
from starforge.domain.actions.submit import SubmitStatus
from starforge.domain.capsule import capsule_key
from starforge.domain.changes import Changes, NewCommand
from starforge.domain.errors import Conflict, NotFound, StaleRevision, WrongState
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.observation import RunPhase
from starforge.domain.queries import LogRange
from starforge.domain.timeline import Action, ActionRequested, CommandKind
from tests.unit.actions.fakes import Crash
from tests.unit.actions.world import ANN, World, head

LIFE = [
    JobState.SUBMITTED, JobState.PACKAGING, JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING, JobState.FINISHING,
]  # fmt: skip


def again(world: World, job: JobId, key: str | None = None, note: str | None = None) -> Retried:
    return retry(world.ports, job, Again(ANN, key, note))


def run_to_its_end(world: World, job: JobId, code: int) -> None:
    world.work()
    world.see(job, RunPhase.RUNNING, head())
    world.say(job, f"says attempt {world.job(job).attempt.number}", world.exit(job, code))
    world.see(job, RunPhase.FAILED if code else RunPhase.SUCCEEDED, head())
    world.settle()
    assert world.job(job).ended


def failed(world: World) -> JobId:
    job = world.submit()
    run_to_its_end(world, job, 1)
    assert world.job(job).state is JobState.FAILED
    return job


def test_the_next_attempt_runs_the_same_capsule_to_its_own_end(world: World) -> None:
    job = failed(world)
    before = world.job(job)
    done = again(world, job, note="a node was bad")
    assert (done.status, done.attempt.number, done.job.state) == (SubmitStatus.CREATED, 2, JobState.SUBMITTED)
    assert done.job.attempt == done.attempt
    stored = dict(world.objects.objects)
    run_to_its_end(world, job, 0)
    after = world.job(job)
    assert (after.state, after.spec, after.capsule) == (JobState.SUCCEEDED, before.spec, before.capsule)
    first, second = (world.fleet.launches[index] for index in (0, 1))
    assert (second.run, second.capsule_digest) == (RunKey(job, 2), first.capsule_digest)
    assert second.name != first.name
    assert stored.items() <= world.objects.objects.items()
    old, new = world.sql.attempts([job])[job]
    assert (old, new) == (before.attempt, after.attempt)
    assert [span.state for span in new.spans] == [*LIFE, JobState.SUCCEEDED]
    assert world.states(job) == [*LIFE, JobState.FAILED, *LIFE, JobState.SUCCEEDED]


def test_each_attempt_keeps_its_own_log(world: World) -> None:
    job = failed(world)
    again(world, job)
    run_to_its_end(world, job, 0)
    for number in (1, 2):
        lines = world.sql.log_lines(LogRange(RunKey(job, number), "driver", 1, 10))
        assert [line.text for line in lines] == [f"says attempt {number}"]
        assert world.objects.objects[f"logs/{job}/{number}/driver.log"] == f"says attempt {number}\n".encode()


def test_its_clocks_are_new(world: World) -> None:
    job = failed(world)
    at = world.clock()
    attempt = again(world, job).attempt
    assert [clock.due_at for clock in attempt.clocks if clock.due_at] == [at + timedelta(seconds=600)]
    assert (attempt.outcome, attempt.reason, attempt.started_at, attempt.cancellation) == (None, None, None, None)


def test_who_asked_and_why_is_told(world: World) -> None:
    job = failed(world)
    again(world, job, note="a node was bad")
    asked = [entry for entry in world.entries(job) if isinstance(entry.detail, ActionRequested)][-1]
    assert asked.detail == ActionRequested(Action.RETRY, ANN, "a node was bad")
    assert (asked.run, asked.message) == (RunKey(job, 2), "ann asked for attempt 2: a node was bad")


def test_a_job_that_has_not_ended_is_left_as_it_is(world: World) -> None:
    for job in (world.submit(), world.running(), world.finishing()):
        assert not can_be_retried(world.job(job))
        before = world.job(job)
        with pytest.raises(WrongState) as refused:
            again(world, job)
        assert [(one.code, one.field) for one in refused.value.problems] == [("WRONG_STATE", ("id",))]
        assert world.job(job) == before


def test_the_same_key_gives_the_same_attempt(world: World) -> None:
    job = failed(world)
    first, replay = again(world, job, "k"), again(world, job, "k", "other words")
    assert (replay.status, replay.attempt) == (SubmitStatus.REPLAYED, first.attempt)
    run_to_its_end(world, job, 1)
    assert again(world, job, "k").attempt.number == 2
    assert again(world, job, "k2").attempt.number == 3
    old = again(world, job, "k")
    assert (old.status, old.attempt.number, old.job.attempt.number) == (SubmitStatus.REPLAYED, 2, 3)


def test_a_key_of_another_job_is_a_conflict(world: World) -> None:
    one, other = failed(world), failed(world)
    again(world, one, "k")
    with pytest.raises(Conflict) as refused:
        again(world, other, "k")
    assert refused.value.job == one
    assert world.job(other).attempt.number == 1


@pytest.mark.parametrize(("key", "expected"), [("k", SubmitStatus.REPLAYED), (None, None)])
def test_of_two_at_once_one_makes_the_attempt(world: World, key: str | None, expected: SubmitStatus | None) -> None:
    job = failed(world)
    world.store.interfere = [lambda: again(world, job, key)]
    if expected:
        assert again(world, job, key).status is expected
    else:
        with pytest.raises(WrongState):
            again(world, job, key)
    assert world.job(job).attempt.number == 2


def test_one_that_is_cut_before_or_after_its_commit_can_be_sent_again(new_world: Callable[[], World]) -> None:
    for at, status in ((1, SubmitStatus.CREATED), (2, SubmitStatus.REPLAYED)):
        world = new_world()
        job = failed(world)
        world.faults.at = world.faults.count + at
        with pytest.raises(Crash):
            again(world, job, "k")
        assert again(world, job, "k").status is status
        assert world.job(job).attempt.number == 2


def test_code_that_was_never_packaged_is_packaged_then(world: World) -> None:
    job = world.submit()
    cancel(world.ports, job, Wish(ANN))
    world.settle()
    assert (world.job(job).state, world.job(job).capsule) == (JobState.CANCELED, None)
    again(world, job)
    run_to_its_end(world, job, 0)
    assert world.job(job).attempt.outcome is JobOutcome.SUCCEEDED


def test_a_capsule_that_is_gone_is_built_again(world: World) -> None:
    job = failed(world)
    digest = world.job(job).capsule
    assert digest is not None
    del world.objects.objects[capsule_key(digest)]
    again(world, job)
    run_to_its_end(world, job, 0)
    assert world.job(job).capsule == digest
    assert capsule_key(digest) in world.objects.objects


def test_a_store_that_never_takes_it_is_told(world: World) -> None:
    def stale() -> None:
        raise StaleRevision("Somebody was first.")

    job = failed(world)
    world.store.interfere = [stale] * 99
    with pytest.raises(StaleRevision):
        again(world, job)


def test_there_is_an_end_to_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPTS_MAX", 1)
    job = failed(world)
    with pytest.raises(WrongState, match="which is the most"):
        again(world, job)


@pytest.mark.parametrize(
    ("key", "note", "field"), [("", None, "idempotencyKey"), (None, "x" * 501, "note"), (None, "\0", "note")]
)
def test_a_retry_that_can_not_be(world: World, key: str | None, note: str | None, field: str) -> None:
    job = failed(world)
    with pytest.raises(WrongState) as refused:
        again(world, job, key, note)
    assert [one.field for one in refused.value.problems] == [(field,)]


def test_a_job_that_is_not_there(world: World) -> None:
    with pytest.raises(NotFound):
        again(world, JobId("job-none"))


@pytest.mark.parametrize("kind", CommandKind)
def test_a_late_command_of_the_first_attempt_does_nothing_to_the_second(world: World, kind: CommandKind) -> None:
    job = failed(world)
    again(world, job)
    before = world.job(job)
    late = NewCommand(CommandId("late"), kind, RunKey(job, 1), world.clock())
    world.store.commit(Changes(commands=[late]), at=world.clock())
    asked = (len(world.fleet.launches), len(world.fleet.deletes), len(world.fleet.stops))
    assert perform(world.ports, late.id)
    assert world.job(job) == before
    assert (len(world.fleet.launches), len(world.fleet.deletes), len(world.fleet.stops)) == asked


def test_a_launch_whose_worker_slept_through_the_first_attempt_does_not_launch_the_second(world: World) -> None:
    job = world.submit()
    world.clock.forward(1)
    [package] = world.due()
    perform(world.ports, package)
    [launching] = world.due()

    def sleeps() -> None:
        world.fleet.during_launch = None
        cancel(world.ports, job, Wish(ANN))
        world.clock.forward(LEASE_S + 1)
        [archiving] = [one for one in world.due() if one != launching]
        perform(world.ports, archiving)
        world.clock.forward(60)
        for _ in range(5):
            for one in world.due():
                if one != launching:
                    perform(world.ports, one)
            world.clock.forward(5)
        assert world.job(job).state is JobState.CANCELED
        again(world, job)

    world.fleet.during_launch = sleeps
    perform(world.ports, launching)
    assert replace(world.job(job).attempt, nonce_hashes=()).state is JobState.SUBMITTED
