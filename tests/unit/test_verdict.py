"""From what is seen to the next state; silence and old pictures decide nothing."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.job import PATH, Ending, Job, JobOutcome, JobState, RunIdentity, advance, finish
from starforge.domain.names import run_name
from starforge.domain.observation import (
    ENDED_PHASES,
    ContainerRole,
    ContainerState,
    ContainerView,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RayJobView,
    RunPhase,
    RunSeen,
    rayjob_phase,
)
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.verdict import hold, judge
from tests.unit.examples import AT, a_job, later

HEAD = PodView(
    "head-uid",
    "head",
    "training",
    PodRuntime.KUBERNETES,
    PodRole.HEAD,
    "train",
    0,
    PodPhase.RUNNING,
    AT,
    AT,
    ready=True,
)
FULL = reason(ReasonCode.UNSCHEDULABLE, "No node.", AT)
CANCELED = reason(ReasonCode.CANCELED, "ann canceled it.", AT)
LATE = later(9)


def job_in(state: JobState) -> Job:
    job = advance(a_job(), state, later(1)) if state in PATH else a_job()
    return job.with_attempt(replace(job.attempt, run=RunIdentity("digits-1"), head_uid="head-uid"))


def seen(phase: RunPhase, *pods: PodView, message: str | None = None) -> RunSeen:
    return RunSeen(a_job().run, phase, later(8), pods, message=message)


def judged(job: Job, phase: RunPhase, *pods: PodView, message: str | None = None) -> Job:
    return judge(job, seen(phase, *pods, message=message), None, LATE)


def code_of(job: Job) -> ReasonCode | None:
    return job.attempt.reason.code if job.attempt.reason else None


heads = st.builds(
    replace,
    st.just(HEAD),
    uid=st.sampled_from(["head-uid", "another"]),
    phase=st.sampled_from(PodPhase),
    restarts=st.integers(0, 1),
    terminating=st.booleans(),
)
pictures = st.builds(
    lambda phase, pods, message: seen(phase, *pods, message=message),
    st.sampled_from(RunPhase),
    st.lists(heads, max_size=2),
    st.sampled_from([None, "", "exit code 3", "exit code: 0", "exit code 113", "runtime_env setup failed: x"]),
)


@settings(max_examples=120)
@given(st.sampled_from(PATH), st.lists(pictures, max_size=5), st.booleans())
def test_any_pictures_give_a_legal_life(state: JobState, told: list[RunSeen], ends: bool) -> None:
    job = job_in(state)
    if ends and state is JobState.RUNNING:
        job = job.with_attempt(replace(job.attempt, ending=Ending(JobOutcome.CANCELED, CANCELED, later(60))))
    before = job.attempt.spans
    for picture in told:
        job = judge(job, picture, FULL, LATE)
    assert job.attempt.spans[: len(before) - 1] == before[:-1]
    assert job.state in {*PATH, JobState.FINISHING}
    if job.decided:
        assert (job.attempt.reason is None) == (job.attempt.outcome is JobOutcome.SUCCEEDED)
        assert not ends or state is not JobState.RUNNING or job.attempt.outcome is JobOutcome.CANCELED


@pytest.mark.parametrize("state", [JobState.SUBMITTED, JobState.PACKAGING])
@pytest.mark.parametrize("phase", RunPhase)
def test_before_it_is_launched_nothing_seen_counts(state: JobState, phase: RunPhase) -> None:
    assert judged(job_in(state), phase, HEAD).state is state


@pytest.mark.parametrize("phase", RunPhase)
def test_what_is_decided_stays(phase: RunPhase) -> None:
    job = finish(job_in(JobState.RUNNING), JobOutcome.SUCCEEDED, None, later(2))
    after = judged(job, phase, replace(HEAD, uid="another"))
    assert (after.attempt.outcome, after.attempt.reason, after.state) == (
        JobOutcome.SUCCEEDED,
        None,
        JobState.FINISHING,
    )


def test_waiting_keeps_the_reason_as_old_as_it_is() -> None:
    job = judge(job_in(JobState.LAUNCHING), seen(RunPhase.WAITING), FULL, LATE)
    assert (job.state, job.attempt.reason) == (JobState.PENDING, FULL)
    again = replace(FULL, since=later(50))
    assert judge(job, seen(RunPhase.WAITING), again, later(50)).attempt.reason is FULL
    assert judged(job, RunPhase.RUNNING).attempt.reason is None


def test_only_what_waits_is_held() -> None:
    assert hold(job_in(JobState.RUNNING), FULL).attempt.reason is None
    assert hold(job_in(JobState.PENDING), None).attempt.reason is None
    assert hold(job_in(JobState.PENDING), FULL).attempt.reason is FULL


@pytest.mark.parametrize("phase", sorted(ENDED_PHASES))
def test_every_end_that_is_seen_ends_it(phase: RunPhase) -> None:
    for state in (JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING):
        after = judged(job_in(state), phase)
        assert after.state is JobState.FINISHING
        assert (after.attempt.outcome is JobOutcome.SUCCEEDED) == (phase is RunPhase.SUCCEEDED)


@pytest.mark.parametrize(
    ("state", "phase", "message", "code"),
    [
        (JobState.PENDING, RunPhase.INVALID, "x", ReasonCode.INVALID_SPEC),
        (JobState.RUNNING, RunPhase.STOPPED, None, ReasonCode.DELETED_OUTSIDE),
        (JobState.PENDING, RunPhase.FAILED, "runtime_env setup failed: x", ReasonCode.RUNTIME_ENV),
        (JobState.PENDING, RunPhase.FAILED, "Job failed: exit code 3", ReasonCode.USER_CODE),
        (JobState.PENDING, RunPhase.FAILED, "x", ReasonCode.LAUNCH_FAILED),
        (JobState.RUNNING, RunPhase.FAILED, "x", ReasonCode.HEAD_LOST),
        (JobState.PENDING, RunPhase.FAILED, "exit code 113", ReasonCode.HEAD_LOST),
        (JobState.RUNNING, RunPhase.FAILED, "exit code 114", ReasonCode.OBJECT_STORE_UNAVAILABLE),
        (JobState.RUNNING, RunPhase.FAILED, "exit code 115", ReasonCode.CAPSULE_INVALID),
    ],
)
def test_why_a_run_failed(state: JobState, phase: RunPhase, message: str | None, code: ReasonCode) -> None:
    assert code_of(judged(job_in(state), phase, message=message)) is code


def test_an_exit_code_that_is_told_means_that_it_ran() -> None:
    after = judged(job_in(JobState.PENDING), RunPhase.FAILED, message="exit code 3")
    assert (after.attempt.exit_code, after.attempt.started_at) == (3, LATE)


def test_a_command_that_ended_well_and_a_run_that_did_not_is_no_success() -> None:
    job = job_in(JobState.RUNNING)
    well = job.with_attempt(replace(job.attempt, exit_code=0, exited_at=later(5)))
    after = judged(well, RunPhase.FAILED, message="the head died")
    assert after.attempt.outcome is JobOutcome.FAILED
    assert after.attempt.reason is not None
    assert "exit code 0" in after.attempt.reason.message


def test_a_commands_own_113_is_the_commands() -> None:
    job = job_in(JobState.RUNNING)
    told = job.with_attempt(replace(job.attempt, exit_code=113, exited_at=later(5)))
    assert code_of(judged(told, RunPhase.FAILED, message="exit code 113")) is ReasonCode.USER_CODE


def test_absence_counts_only_of_what_was_there() -> None:
    assert judged(job_in(JobState.LAUNCHING), RunPhase.ABSENT).state is JobState.LAUNCHING
    nameless = job_in(JobState.PENDING)
    nameless = nameless.with_attempt(replace(nameless.attempt, run=None))
    assert judged(nameless, RunPhase.ABSENT).state is JobState.PENDING
    assert code_of(judged(job_in(JobState.PENDING), RunPhase.ABSENT)) is ReasonCode.DELETED_OUTSIDE


def test_a_run_is_known_by_name_from_its_first_picture() -> None:
    job = job_in(JobState.LAUNCHING)
    job = job.with_attempt(replace(job.attempt, run=None))
    view = RayJobView("x", "training", "the uid")
    after = judge(job, replace(seen(RunPhase.WAITING), rayjob=view, uid="the uid"), None, LATE)
    assert after.attempt.run == RunIdentity(run_name("digits", job.run), "training", "the uid")
    known = job.with_attempt(replace(job.attempt, run=RunIdentity("mine", "here", "first")))
    assert judge(known, replace(seen(RunPhase.WAITING), uid="second"), None, LATE).attempt.run == RunIdentity(
        "mine", "here", "first"
    )


@pytest.mark.parametrize(
    "head",
    [
        None,
        replace(HEAD, uid="another"),
        replace(HEAD, restarts=1),
        replace(HEAD, phase=PodPhase.FAILED),
        replace(HEAD, phase=PodPhase.SUCCEEDED),
        replace(HEAD, terminating=True),
    ],
)
def test_a_run_without_its_head_is_lost(head: PodView | None) -> None:
    pods = (head,) if head else ()
    assert code_of(judged(job_in(JobState.RUNNING), RunPhase.RUNNING, *pods)) is ReasonCode.HEAD_LOST
    assert code_of(judged(job_in(JobState.RUNNING), RunPhase.WAITING, *pods)) is ReasonCode.HEAD_LOST


def test_a_head_that_was_never_seen_is_not_lost() -> None:
    job = job_in(JobState.RUNNING)
    unseen = job.with_attempt(replace(job.attempt, head_uid=None))
    assert judged(unseen, RunPhase.RUNNING).state is JobState.RUNNING


def test_a_sidecar_that_restarts_is_no_loss() -> None:
    side = ContainerView("mesh", ContainerRole.SIDECAR, "x", ContainerState.RUNNING, restarts=2)
    main = ContainerView("ray", ContainerRole.MAIN, "x", ContainerState.RUNNING)
    head = replace(HEAD, restarts=2, containers=(side, main))
    assert judged(job_in(JobState.RUNNING), RunPhase.RUNNING, head).state is JobState.RUNNING
    twice = replace(head, containers=(side, replace(main, restarts=1)))
    assert code_of(judged(job_in(JobState.RUNNING), RunPhase.RUNNING, twice)) is ReasonCode.HEAD_LOST


@pytest.mark.parametrize("state", [JobState.LAUNCHING, JobState.PENDING])
def test_a_head_may_be_replaced_until_something_was_started_on_it(state: JobState) -> None:
    for pods in [(), (replace(HEAD, terminating=True),), (replace(HEAD, uid="another"),)]:
        assert judged(job_in(state), RunPhase.WAITING, *pods).state is JobState.PENDING
    moved = judged(job_in(state), RunPhase.WAITING, replace(HEAD, uid="another"))
    assert moved.attempt.head_uid == "another"
    assert judged(moved, RunPhase.RUNNING, replace(HEAD, uid="another")).state is JobState.RUNNING


def test_what_was_decided_on_has_the_last_word_about_a_lost_head() -> None:
    job = job_in(JobState.RUNNING)
    ending = Ending(JobOutcome.CANCELED, CANCELED, later(60))
    after = judged(job.with_attempt(replace(job.attempt, ending=ending)), RunPhase.RUNNING)
    assert (after.attempt.outcome, after.attempt.reason) == (JobOutcome.CANCELED, CANCELED)


@pytest.mark.parametrize(
    ("job_status", "deployment", "phase"),
    [
        ("SUCCEEDED", "Complete", RunPhase.SUCCEEDED),
        ("STOPPED", "Complete", RunPhase.STOPPED),
        ("FAILED", "Failed", RunPhase.FAILED),
        ("RUNNING", "Running", RunPhase.RUNNING),
        ("PENDING", "Running", RunPhase.WAITING),
        ("SUCCEEDED", "Running", RunPhase.WAITING),
        (None, "Initializing", RunPhase.WAITING),
        (None, "ValidationFailed", RunPhase.INVALID),
        (None, None, RunPhase.WAITING),
    ],
)
def test_phases_of_a_rayjob(job_status: str | None, deployment: str | None, phase: RunPhase) -> None:
    assert rayjob_phase(job_status, deployment) is phase
