"""Submitting: one transaction, everything wrong at once, and the same answer however often it is sent."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from starforge.domain.actions.submit import Submission, SubmitStatus, submit
from starforge.domain.capacity.fit import FitVerdict
from starforge.domain.capsule import InlineFile
from starforge.domain.errors import (
    CodeRefused,
    Conflict,
    SpecRefused,
    StaleRevision,
    StoreUnavailable,
    Unsatisfiable,
    UserMistake,
)
from starforge.domain.job import JobState
from starforge.domain.names import Digest
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter
from starforge.domain.timeline import EventType
from tests.unit.actions.fakes import Crash
from tests.unit.actions.world import ANN, DRAFT, FILES, World

WHAT = Submission(DRAFT, FILES, "key-1")


def jobs(world: World) -> int:
    return world.sql.job_count(JobFilter(), at_most=100)


def mistakes(ports: Ports, what: Submission, kind: type[UserMistake]) -> dict[tuple[str, ...], str]:
    with pytest.raises(kind) as caught:
        submit(ports, what, ANN)
    return {problem.field: problem.code for problem in caught.value.problems}


def test_a_job_is_there_with_its_command_and_its_events(world: World) -> None:
    done = submit(world.ports, WHAT, ANN)
    assert done.status is SubmitStatus.CREATED
    assert done.job == world.job(done.job.id)
    assert done.job.state is JobState.SUBMITTED
    assert [entry.type for entry in world.entries(done.job.id)] == [
        EventType.ACTION_REQUESTED,
        EventType.STATE_CHANGED,
        EventType.CLOCK_CHANGED,
    ]
    assert list(world.due()) == world.nudged
    assert world.sql.inline_code(done.job.id) == FILES


def test_it_needs_neither_fleet_nor_object_store(world: World) -> None:
    world.fleet.down, world.objects.down = "away", True
    assert submit(world.ports, WHAT, ANN).status is SubmitStatus.CREATED


def test_the_same_again_under_its_key_is_replayed(world: World) -> None:
    first = submit(world.ports, WHAT, ANN)
    again = submit(world.ports, WHAT, ANN)
    assert (again.status, again.job.id) == (SubmitStatus.REPLAYED, first.job.id)
    assert jobs(world) == 1


def test_without_a_key_each_is_a_job(world: World) -> None:
    submit(world.ports, Submission(DRAFT, FILES), ANN)
    submit(world.ports, Submission(DRAFT, FILES), ANN)
    assert jobs(world) == 2


@pytest.mark.parametrize(
    "other", [replace(WHAT, draft=replace(DRAFT, name="other")), replace(WHAT, code=(InlineFile("a.py", ""),))]
)
def test_a_key_with_another_body_is_a_conflict(world: World, other: Submission) -> None:
    submit(world.ports, WHAT, ANN)
    assert mistakes(world.ports, other, Conflict) == {("idempotencyKey",): "CONFLICT"}
    assert jobs(world) == 1


def test_the_order_of_files_does_not_make_another_body(world: World) -> None:
    files = (*FILES, InlineFile("b.py", "2"))
    submit(world.ports, replace(WHAT, code=files), ANN)
    assert submit(world.ports, replace(WHAT, code=files[::-1]), ANN).status is SubmitStatus.REPLAYED


def test_two_at_the_same_time_make_one_job(world: World) -> None:
    world.store.interfere = [lambda: submit(world.ports, WHAT, ANN)]
    assert submit(world.ports, WHAT, ANN).status is SubmitStatus.REPLAYED
    assert jobs(world) == 1


def test_one_that_is_cut_before_or_after_its_commit_can_be_sent_again(new_world: Callable[[], World]) -> None:
    for at, status in ((1, SubmitStatus.CREATED), (2, SubmitStatus.REPLAYED)):
        world = new_world()
        world.faults.at = at
        with pytest.raises(Crash):
            submit(world.ports, WHAT, ANN)
        assert submit(world.ports, WHAT, ANN).status is status
        assert jobs(world) == 1
        world.work()
        assert len(world.fleet.orders) == 1


def test_everything_wrong_is_told_at_once(world: World) -> None:
    draft = replace(DRAFT, name="", pools=())
    what = Submission(draft, (InlineFile("../x", ""),), "k" * 129)
    found = mistakes(world.ports, what, SpecRefused)
    assert found == {
        ("spec", "name"): "INVALID",
        ("spec", "pools"): "REQUIRED",
        ("code",): "UNSAFE_PATH",
        ("idempotencyKey",): "OUT_OF_RANGE",
    }
    assert jobs(world) == 0


def test_code_alone_is_refused_as_code(world: World) -> None:
    assert mistakes(world.ports, Submission(DRAFT, (InlineFile("starforge.py", ""),)), CodeRefused) == {
        ("code",): "RESERVED"
    }


def test_text_that_is_no_unicode_is_refused(world: World) -> None:
    what = Submission(DRAFT, (InlineFile("a.py", "\ud800"),))
    assert mistakes(world.ports, what, CodeRefused) == {("code",): "INVALID"}


def test_code_that_nobody_announced_is_not_found(world: World) -> None:
    what = Submission(DRAFT, Digest("0" * 64))
    assert mistakes(world.ports, what, SpecRefused) == {("code", "digest"): "CODE_NOT_FOUND"}


LARGE = replace(DRAFT, pools=(replace(DRAFT.pools[0], gpus_per_machine=8),))


def test_what_no_node_could_ever_hold_is_refused(world: World) -> None:
    world.see_node(gpus=4)
    with pytest.raises(Unsatisfiable) as refused:
        submit(world.ports, Submission(LARGE, FILES), ANN)
    fit = refused.value.fit
    assert (fit.verdict, [pool.verdict for pool in fit.pools]) == (FitVerdict.NEVER, [FitVerdict.NEVER])
    assert [(one.code, one.field, one.message) for one in refused.value.problems] == [
        ("UNSATISFIABLE", ("spec", "pools"), fit.message)
    ]
    assert world.sql.job_count(JobFilter(), at_most=10) == 0
    submit(world.ports, Submission(DRAFT, FILES), ANN)


def test_what_is_unknown_is_taken(world: World) -> None:
    submit(world.ports, Submission(LARGE, FILES), ANN)
    world.see_node(gpus=4)
    world.clock.forward(3600)
    submit(world.ports, Submission(LARGE, FILES), ANN)


def test_what_can_t_be_placed_today_is_taken_if_asked_for_and_replayed(world: World) -> None:
    world.see_node(gpus=4)
    made = submit(world.ports, Submission(LARGE, FILES, "key", allow_unsatisfiable=True), ANN)
    again = submit(world.ports, Submission(LARGE, FILES, "key"), ANN)
    assert (made.status, again.status, again.job.id) == (SubmitStatus.CREATED, SubmitStatus.REPLAYED, made.job.id)


def test_a_conflict_in_the_store_that_is_no_replay_is_not_hidden(world: World) -> None:
    def stale() -> None:
        raise StaleRevision("It is there already.")

    world.store.interfere = [stale]
    with pytest.raises(StaleRevision):
        submit(world.ports, replace(WHAT, idempotency_key=None), ANN)


def test_what_is_committed_is_not_taken_back_by_a_store_that_goes_away_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> None:
        raise StoreUnavailable("It restarts.")

    with monkeypatch.context() as patch:
        patch.setattr(world.sql, "due", away)
        assert submit(world.ports, WHAT, ANN).status is SubmitStatus.CREATED
    assert world.nudged == []
    assert len(world.due()) == 1
