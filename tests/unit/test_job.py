"""The state machine: whatever is done to a job, it stays a job that can be."""

import itertools
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.deadlines import RUNS, ClockKind
from starforge.domain.errors import IllegalMove
from starforge.domain.job import (
    END_STATES,
    MOVES,
    PATH,
    Ending,
    Job,
    JobOutcome,
    JobState,
    advance,
    conclude,
    end,
    finish,
    move,
)
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.spec import Deadlines
from starforge.domain.teardown import TeardownState
from tests.unit.examples import AT, a_job, a_spec, later

WHY = reason(ReasonCode.USER_CODE, "It failed.", AT)
STEPS = ("move", "advance", "finish", "conclude", "release", "end")


def released(job: Job, at: datetime) -> Job:
    if job.attempt.teardown is None:
        return job
    teardown = replace(job.attempt.teardown, state=TeardownState.RELEASED, released_at=at)
    return job.with_attempt(replace(job.attempt, teardown=teardown, released_at=at))


def step(job: Job, what: str, to: JobState, outcome: JobOutcome, at: datetime) -> Job:
    """One step as actions do it, or the same job if it is illegal."""
    try:
        if what == "move":
            # How a job finishes is the business of finish and end: a bare move would leave no outcome.
            return move(job, to, at) if to in PATH else job
        if what == "advance":
            return advance(job, to, at) if to in PATH else job
        if what == "finish":
            return finish(job, outcome, WHY, at)
        if what == "conclude":
            return conclude(job, outcome, WHY, at)
        return released(job, at) if what == "release" else end(job, at)
    except IllegalMove:
        return job


walks = st.lists(
    st.tuples(st.sampled_from(STEPS), st.sampled_from(JobState), st.sampled_from(JobOutcome), st.integers(-20, 20)),
    max_size=14,
)
limits = st.builds(Deadlines, *[st.sampled_from([0, 60])] * 3)


def walked(walk: list[tuple[str, JobState, JobOutcome, int]], deadlines: Deadlines) -> list[Job]:
    job, seconds = a_job(replace(a_spec(), deadlines=deadlines)), 0
    jobs = [job]
    for what, to, outcome, more in walk:
        seconds += more  # also backwards: workers' clocks may disagree
        job = step(job, what, to, outcome, later(seconds))
        jobs.append(job)
    return jobs


@settings(max_examples=60)
@given(walks, limits)
def test_a_walk_never_leaves_the_table(walk: list[tuple[str, JobState, JobOutcome, int]], deadlines: Deadlines) -> None:
    jobs = walked(walk, deadlines)
    for before, after in itertools.pairwise(jobs):
        old, new = [[span.state for span in job.attempt.spans] for job in (before, after)]
        assert new[: len(old)] == old
        assert all(to in MOVES[state] for state, to in itertools.pairwise(new))
    assert len({span.state for span in jobs[-1].attempt.spans}) == len(jobs[-1].attempt.spans)


@settings(max_examples=60)
@given(walks, limits)
def test_spans_are_contiguous_and_times_never_run_backwards(
    walk: list[tuple[str, JobState, JobOutcome, int]], deadlines: Deadlines
) -> None:
    attempt = walked(walk, deadlines)[-1].attempt
    spans = attempt.spans
    assert spans[0].entered_at == attempt.created_at
    for span, following in itertools.pairwise(spans):
        assert span.left_at == following.entered_at
        assert span.entered_at <= following.entered_at
    assert spans[-1].left_at is None
    times = (attempt.created_at, attempt.launched_at, attempt.started_at, attempt.finished_at, attempt.ended_at)
    known = [time for time in times if time]
    assert known == sorted(known)


@settings(max_examples=60)
@given(walks, limits)
def test_clocks_fit_the_state(walk: list[tuple[str, JobState, JobOutcome, int]], deadlines: Deadlines) -> None:
    for job in walked(walk, deadlines):
        running = {clock.kind for clock in job.attempt.clocks if clock.state in RUNS}
        allowed = {
            JobState.PENDING: {ClockKind.PRE_RUNNING},
            JobState.RUNNING: {ClockKind.ACTIVE},
            JobState.FINISHING: set(),
        } | {key: set() for key in END_STATES}
        assert running <= allowed.get(job.state, {ClockKind.QUEUE})
        for clock in job.attempt.clocks:
            assert (clock.due_at is not None) == (clock.state in RUNS)
            assert clock.limit_s or clock.kind not in running


@settings(max_examples=60)
@given(walks, limits)
def test_an_outcome_is_there_from_finishing_on_and_only_then(
    walk: list[tuple[str, JobState, JobOutcome, int]], deadlines: Deadlines
) -> None:
    for job in walked(walk, deadlines):
        over = job.state is JobState.FINISHING or job.ended
        assert job.decided == over
        assert (job.attempt.teardown is not None) == over
        if job.ended:
            assert job.attempt.outcome is not None
            assert job.state.value == job.attempt.outcome.value
            assert job.attempt.released_at
            assert job.attempt.ended_at


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("to", JobState)
def test_every_move_is_legal_or_an_error(state: JobState, to: JobState) -> None:
    spans = (replace(a_job().attempt.spans[0], state=state),)
    job = a_job().with_attempt(replace(a_job().attempt, spans=spans))
    if to in MOVES[state]:
        assert move(job, to, later(1)).state is to
        return
    with pytest.raises(IllegalMove, match=f"job-1 can't go from {state} to {to}"):
        move(job, to, later(1))


def test_the_usual_path_is_a_path_of_the_table() -> None:
    assert all(to in MOVES[state] for state, to in itertools.pairwise(PATH))
    assert all(not MOVES[state] for state in END_STATES)
    assert set(MOVES) == set(JobState)


def test_advance_skips_no_state_and_never_goes_back() -> None:
    job = advance(a_job(), JobState.RUNNING, later(5))
    assert [span.state for span in job.attempt.spans] == list(PATH)
    assert advance(job, JobState.PENDING, later(6)) is job
    over = finish(job, JobOutcome.FAILED, WHY, later(6))
    assert advance(over, JobState.RUNNING, later(7)) is over


def test_a_job_does_not_end_before_its_cluster_is_proven_gone() -> None:
    job = finish(a_job(), JobOutcome.CANCELED, WHY, later(1))
    with pytest.raises(IllegalMove, match="proven gone"):
        end(job, later(2))
    with pytest.raises(IllegalMove):
        end(a_job(), later(2))
    assert end(released(job, later(2)), later(3)).state is JobState.CANCELED


def test_a_reason_to_wait_ends_with_the_waiting() -> None:
    for state in PATH[:-1]:
        job = advance(a_job(), state, later(1))
        held = job.with_attempt(replace(job.attempt, reason=WHY))
        assert move(held, PATH[PATH.index(state) + 1], later(2)).attempt.reason is None


def test_an_ending_that_was_decided_on_has_the_last_word() -> None:
    job = advance(a_job(), JobState.RUNNING, later(1))
    canceled = reason(ReasonCode.CANCELED, "ann canceled it.", AT)
    ending = Ending(JobOutcome.CANCELED, canceled, later(9))
    ends = conclude(job.with_attempt(replace(job.attempt, ending=ending)), JobOutcome.FAILED, WHY, later(2))
    assert (ends.attempt.outcome, ends.attempt.reason, ends.attempt.ending) == (JobOutcome.CANCELED, canceled, None)
    assert conclude(job, JobOutcome.FAILED, WHY, later(2)).attempt.outcome is JobOutcome.FAILED


def test_a_job_that_recovers_is_no_more_stale_when_it_ends() -> None:
    job = finish(a_job(), JobOutcome.FAILED, WHY, later(1))
    stale = released(job.with_attempt(replace(job.attempt, stale_since=AT, stale_problem="away")), later(2))
    ended = end(stale, later(3)).attempt
    assert (ended.stale_since, ended.stale_problem) == (None, None)
