"""What a change is told as: aspects for pages, entries for the timeline."""

from dataclasses import replace

from starforge.domain import deadlines
from starforge.domain.changes import Aspect, Changes
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.job import Job, JobOutcome, JobState, advance, finish, move
from starforge.domain.progress import report
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.telling import aspects, entries, write
from starforge.domain.timeline import ClockChanged, ReasonChanged, Severity, StateChanged, TeardownChanged
from tests.unit.examples import AT, a_job, later

FULL = reason(ReasonCode.UNSCHEDULABLE, "No node.", AT)
STARTING = reason(ReasonCode.STARTING, "1 of 2 machines are ready.", AT)
FAILED = reason(ReasonCode.USER_CODE, "It ended with exit code 3.", AT)


def held(job: Job, why: object) -> Job:
    return job.with_attempt(replace(job.attempt, reason=why))  # type: ignore[arg-type]


def details(before: Job | None, after: Job) -> list[object]:
    return [entry.detail for entry in entries(before, after, later(1), lambda: "x")]


def test_a_new_job_is_told_with_its_state_and_clock() -> None:
    found = details(None, a_job())
    assert [type(detail) for detail in found] == [StateChanged, ClockChanged]
    assert aspects(None, a_job()) == {Aspect.STATE, Aspect.CLOCKS}


def test_every_state_is_told_once_and_in_order_even_several_at_once() -> None:
    found = details(a_job(), advance(a_job(), JobState.RUNNING, later(1)))
    states = [(detail.before, detail.after) for detail in found if isinstance(detail, StateChanged)]
    assert states == [
        (JobState.SUBMITTED, JobState.PACKAGING),
        (JobState.PACKAGING, JobState.LAUNCHING),
        (JobState.LAUNCHING, JobState.PENDING),
        (JobState.PENDING, JobState.RUNNING),
    ]


def test_nothing_new_is_neither_written_nor_told() -> None:
    job, changes = a_job(), Changes()
    assert aspects(job, job) == frozenset()
    assert details(job, job) == []
    write(changes, job, job, later(1), lambda: "x")
    assert changes.empty


def test_a_change_that_no_page_shows_is_written_quietly() -> None:
    job, changes = a_job(), Changes()
    write(changes, job, job.with_attempt(replace(job.attempt, observed_at=later(1))), later(1), lambda: "x")
    (written,) = changes.jobs
    assert written.aspects == frozenset()
    assert written.job.updated_at == AT


def test_what_is_told_moves_the_time_of_change_and_never_back() -> None:
    job = a_job()
    for seconds, expected in ((5, later(5)), (-5, AT)):
        changes = Changes()
        write(changes, job, held(job, FULL), later(seconds), lambda: "x")
        assert changes.jobs[0].job.updated_at == expected


def test_a_page_may_be_told_of_what_is_not_in_the_row() -> None:
    changes = Changes()
    write(changes, a_job(), a_job(), later(1), lambda: "x", Aspect.PODS)
    assert changes.jobs[0].aspects == {Aspect.PODS}


def test_each_aspect_has_its_fields() -> None:
    job = advance(a_job(), JobState.RUNNING, later(1))
    attempt = job.attempt
    for aspect, changed in {
        Aspect.STATE: replace(attempt, exit_code=3),
        Aspect.REASON: replace(attempt, reason=FULL),
        Aspect.PROGRESS: replace(attempt, progress=report(None, 1, 2, (), AT)),
        Aspect.CLOCKS: replace(attempt, clocks=deadlines.stop(attempt.clocks, ClockKind, later(2))),
        Aspect.OBSERVATION: replace(attempt, stale_since=AT),
    }.items():
        assert aspects(job, job.with_attempt(changed)) == {aspect}


def test_a_reason_is_told_when_its_story_changes() -> None:
    job = a_job()
    assert details(job, held(job, FULL)) == [ReasonChanged(FULL)]
    assert details(held(job, FULL), held(job, replace(FULL, since=later(9), evidence=()))) == []
    (entry,) = entries(held(job, FULL), job, later(1), lambda: "x")
    assert entry.message == "Nothing holds it any more."


def test_machines_that_get_ready_one_by_one_are_no_events() -> None:
    job, more = a_job(), replace(STARTING, message="2 of 2 machines are ready.")
    assert aspects(held(job, STARTING), held(job, more)) == {Aspect.REASON}
    assert details(held(job, STARTING), held(job, more)) == []
    assert details(job, held(job, STARTING)) == [ReasonChanged(STARTING)]
    assert details(held(job, STARTING), held(job, FULL)) == [ReasonChanged(FULL)]


def test_an_end_is_told_with_its_reason_and_as_an_error_only_if_it_failed() -> None:
    job = advance(a_job(), JobState.RUNNING, later(1))
    for outcome, severity in ((JobOutcome.FAILED, Severity.ERROR), (JobOutcome.SUCCEEDED, Severity.INFO)):
        why = FAILED if outcome is JobOutcome.FAILED else None
        after = finish(job, outcome, why, later(2))
        first, *others = entries(job, after, later(2), lambda: "x")
        assert first.detail == StateChanged(JobState.FINISHING, JobState.RUNNING, why)
        assert first.severity is severity
        assert (why.message if why else outcome.value) in first.message
        assert [type(entry.detail) for entry in others] == [ClockChanged, TeardownChanged]


def test_a_clock_that_ran_out_is_an_error() -> None:
    job = a_job()
    expired = job.with_attempt(
        replace(job.attempt, clocks=deadlines.expire(job.attempt.clocks, ClockKind.QUEUE, later(2)))
    )
    (entry,) = entries(job, expired, later(2), lambda: "x")
    assert isinstance(entry.detail, ClockChanged)
    assert (entry.detail.clock.state, entry.severity) == (ClockState.EXPIRED, Severity.ERROR)
    assert entry.message == "The queue clock of 600 s ran out."


def test_entries_know_their_run_and_fleet_and_have_ids_of_their_own() -> None:
    ids = iter("abcdefgh")
    found = list(entries(a_job(), move(a_job(), JobState.PACKAGING, later(1)), later(1), lambda: next(ids)))
    assert {(entry.run, entry.fleet) for entry in found} == {(a_job().run, "home")}
    assert len({entry.id for entry in found}) == len(found)
