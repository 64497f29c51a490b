from dataclasses import replace
from typing import Any

import pytest

from starforge.domain.actions.cancel import CancelStatus, Wish, cancel
from starforge.domain.actions.cancel_many import Sweep, Swept, cancel_many
from starforge.domain.errors import Problem, UserMistake, WrongState
from starforge.domain.job import Actor, ActorKind, JobState
from starforge.domain.names import JobId
from starforge.domain.queries import JobFilter
from starforge.domain.rights import Caller, Role
from tests.contract.store.counting import sent_by
from tests.unit.actions.world import ANN, DRAFT, World

S = CancelStatus
ADMIN = Caller(ANN, Role.ADMIN)
BATCH = JobFilter(name_prefix="batch")


def sweep(world: World, which: JobFilter = BATCH, *, caller: Caller = ADMIN, note: str | None = None,
          grace_s: int | None = None, **rest: Any) -> Swept:  # fmt: skip
    return cancel_many(world.ports, Sweep(which, Wish(caller.actor, note, grace_s), **rest), caller)


def submitted(world: World, count: int, name: str = "batch", **rest: Any) -> list[JobId]:
    jobs = []
    for number in range(count):
        world.clock.forward(1)
        jobs.append(world.submit(replace(DRAFT, name=f"{name}-{number}", **rest)))
    return jobs


def told(swept: Swept) -> list[tuple[CancelStatus, JobId]]:
    return [(status, job.id) for status, job in swept.outcomes]


def state(world: World, jobs: list[JobId]) -> set[JobState]:
    return {world.job(job).state for job in jobs}


def test_what_matches_is_canceled_from_the_oldest_on(world: World) -> None:
    jobs, other = submitted(world, 3), submitted(world, 1, "other")
    done = sweep(world, note="enough")
    assert told(done) == [(S.REQUESTED, job) for job in jobs]
    assert (done.matched, done.remaining, done.gpus) == (3, 0, 3)
    assert state(world, jobs) == {JobState.FINISHING}
    assert state(world, other) == {JobState.SUBMITTED}
    assert [job.attempt.cancellation.note for _, job in done.outcomes if job.attempt.cancellation] == ["enough"] * 3


def test_a_running_job_gets_its_grace(world: World) -> None:
    job = world.running(replace(DRAFT, name="batch"))
    [(status, after)] = sweep(world, grace_s=7).outcomes
    assert (status, after.state) == (S.REQUESTED, JobState.RUNNING)
    world.work()
    assert world.fleet.stops == [(world.run(job), 7)]


def test_a_dry_run_tells_the_same_and_changes_nothing(world: World) -> None:
    jobs = submitted(world, 3)
    cancel(world.ports, jobs[0], Wish(ANN))
    before = world.feed()
    done = sweep(world, dry_run=True)
    assert told(done) == [(S.ALREADY_ENDED, jobs[0]), (S.WOULD_CANCEL, jobs[1]), (S.WOULD_CANCEL, jobs[2])]
    assert (done.matched, done.remaining) == (3, 0)
    assert world.feed() == before


def test_call_after_call_gets_to_the_end(world: World) -> None:
    """Jobs that are ending already take no place from those that are not."""
    jobs = submitted(world, 7)
    first = sweep(world, limit=3)
    assert (told(first), first.matched, first.remaining) == ([(S.REQUESTED, job) for job in jobs[:3]], 7, 4)
    second = sweep(world, limit=3)
    assert (told(second), second.remaining) == ([(S.REQUESTED, job) for job in jobs[3:6]], 1)
    third = sweep(world, limit=3)
    assert third.remaining == 0
    assert told(third) == [*((S.ALREADY_ENDED, job) for job in jobs[:2]), (S.REQUESTED, jobs[6])]


def test_jobs_that_have_ended_are_none_of_it(world: World) -> None:
    jobs = submitted(world, 2)
    sweep(world)
    world.settle()
    assert state(world, jobs) == {JobState.CANCELED}
    assert sweep(world) == Swept([], 0, 0)
    assert sweep(world, replace(BATCH, active=False)) == Swept((), 0, 0)


@pytest.mark.parametrize("which", [JobFilter(), JobFilter(name_prefix=""), JobFilter(labels=())])
def test_a_filter_with_nothing_set_is_refused(world: World, which: JobFilter) -> None:
    jobs = submitted(world, 1)
    narrow = Caller(ANN, Role.SUBMITTER, "vision", frozenset({"vision"}))
    for caller in (ADMIN, narrow):
        with pytest.raises(UserMistake) as refused:
            sweep(world, which, caller=caller)
        assert [(one.code, one.field) for one in refused.value.problems] == [("FILTER_TOO_WIDE", ("filter",))]
    assert state(world, jobs) == {JobState.SUBMITTED}


def test_a_list_with_nothing_in_it_matches_nothing(world: World) -> None:
    submitted(world, 1)
    assert sweep(world, JobFilter(ids=())) == Swept([], 0, 0)


def test_more_than_was_allowed_for_is_refused_as_a_whole(world: World) -> None:
    jobs = submitted(world, 3)
    done = sweep(world, max_matched=2)
    assert done.mistake is not None
    assert [(one.code, one.field) for one in done.mistake.problems] == [("FILTER_TOO_WIDE", ("maxMatched",))]
    assert (done.outcomes, done.matched, done.remaining) == ((), 3, 3)
    assert state(world, jobs) == {JobState.SUBMITTED}
    assert sweep(world, max_matched=3).mistake is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"limit": 0}, "limit"), ({"limit": 501}, "limit"), ({"grace_s": -1}, "graceSeconds"),
        ({"note": "x" * 501}, "note"), ({"max_matched": -1}, "maxMatched"),
    ],
)  # fmt: skip
def test_a_call_that_can_not_be(world: World, given: dict[str, Any], field: str) -> None:
    jobs = submitted(world, 1)
    with pytest.raises(UserMistake) as refused:
        sweep(world, **given)
    assert [one.field for one in refused.value.problems] == [(field,)]
    assert state(world, jobs) == {JobState.SUBMITTED}


def test_nobody_cancels_what_they_can_not_see(world: World) -> None:
    mine, theirs = submitted(world, 1, project="vision"), submitted(world, 1, project="speech")
    bob = Caller(Actor("bob", ActorKind.TOKEN), Role.SUBMITTER, "vision", frozenset({"vision"}))
    done = sweep(world, caller=bob)
    assert (told(done), done.matched) == ([(S.REQUESTED, mine[0])], 1)
    assert sweep(world, replace(BATCH, projects=("speech",)), caller=bob).matched == 0
    assert state(world, theirs) == {JobState.SUBMITTED}


def test_one_that_somebody_else_cancels_meanwhile_holds_up_nobody(world: World) -> None:
    jobs = submitted(world, 3)
    world.store.interfere = [lambda: cancel(world.ports, jobs[1], Wish(ANN, "mine"))]
    done = sweep(world, note="all")
    assert told(done) == [(S.REQUESTED, jobs[0]), (S.ALREADY_ENDED, jobs[1]), (S.REQUESTED, jobs[2])]
    cancellation = world.job(jobs[1]).attempt.cancellation
    assert cancellation is not None
    assert cancellation.note == "mine"


def test_one_that_is_refused_holds_up_nobody_and_is_told_why(world: World) -> None:
    jobs = submitted(world, 3)
    mistake = WrongState([Problem("WRONG_STATE", (), "It can't be canceled now.")])

    def refuse() -> None:
        raise mistake

    someone = lambda: cancel(world.ports, jobs[0], Wish(ANN))  # noqa: E731
    world.store.interfere = [someone, lambda: None, refuse]  # all of them, somebody's own, the second alone
    done = sweep(world)
    assert told(done) == [(S.ALREADY_ENDED, jobs[0]), (S.REFUSED, jobs[1]), (S.REQUESTED, jobs[2])]
    assert done.refused == {jobs[1]: mistake}
    assert done.mistake is None
    assert [world.job(job).state for job in jobs] == [JobState.FINISHING, JobState.SUBMITTED, JobState.FINISHING]


def test_many_jobs_cost_few_transactions(world: World) -> None:
    submitted(world, 50)
    with sent_by(world.sql) as sent:
        assert len(sweep(world).outcomes) == 50
    assert len([one for one, _ in sent if not one.startswith("UPDATE job ")]) <= 20
