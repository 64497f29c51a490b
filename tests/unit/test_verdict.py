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
    PodCondition,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RayJobView,
    RunPhase,
    RunSeen,
    Termination,
    rayjob_phase,
)
from starforge.domain.reason import EvidenceSource, ReasonCode, reason
from starforge.domain.teardown import TeardownState
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
    reason=st.sampled_from([None, "Evicted", "NodeLost"]),
    conditions=st.sampled_from([(), (PodCondition("DisruptionTarget", True, "PreemptionByScheduler"),)]),
)
workers = heads.map(lambda pod: replace(pod, role=PodRole.WORKER))
pictures = st.builds(
    lambda phase, pods, message: seen(phase, *pods, message=message),
    st.sampled_from(RunPhase),
    st.lists(st.one_of(heads, workers), max_size=3),
    st.sampled_from([None, "", "exit code 3", "exit code: 0", "exit code 113", "runtime_env setup failed: x"]),
)


UNREACHED = "HTTPSConnectionPool(host='s3', port=443): Max retries exceeded with url: <url>"
AWAY = ReasonCode.OBJECT_STORE_UNAVAILABLE


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


@settings(max_examples=120)
@given(st.sampled_from(PATH), st.lists(pictures, max_size=3), pictures)
def test_a_picture_that_comes_twice_changes_nothing_more(state: JobState, told: list[RunSeen], last: RunSeen) -> None:
    job = job_in(state)
    known: tuple[PodView, ...] = ()
    for picture in told:
        job, known = judge(job, picture, FULL, LATE, known), picture.pods
    once = judge(job, last, FULL, LATE, known)
    assert judge(once, last, FULL, LATE, last.pods) == once


@settings(max_examples=120)
@given(st.lists(pictures, max_size=4), st.sampled_from([None, replace(HEAD, uid="another"), replace(HEAD, restarts=1)]))
def test_it_never_succeeds_once_its_head_was_lost(told: list[RunSeen], head: PodView | None) -> None:
    job = judged(job_in(JobState.RUNNING), RunPhase.RUNNING, *([head] if head else []))
    for picture in [*told, seen(RunPhase.SUCCEEDED, replace(HEAD, uid="another"))]:
        job = judge(job, picture, FULL, LATE)
    assert job.attempt.outcome is JobOutcome.FAILED


@settings(max_examples=120)
@given(
    st.sampled_from([JobState.PENDING, JobState.RUNNING]),
    st.sampled_from([PodPhase.PENDING, PodPhase.RUNNING, PodPhase.UNKNOWN]),
    st.lists(st.sampled_from(["Ready", "ContainersReady", "DisruptionTarget", "PodScheduled"]), unique=True),
    st.integers(0, 3),
)
def test_what_is_not_known_decides_nothing(state: JobState, phase: PodPhase, types: list[str], workers: int) -> None:
    """A node that does not answer leaves Pods UNKNOWN or as they were, and conditions without a status."""
    unknown = tuple(PodCondition(each, None, "x") for each in types)
    pods = [replace(HEAD, phase=phase, ready=False, conditions=unknown)]
    pods += [replace(pods[0], uid=f"w{number}", role=PodRole.WORKER) for number in range(workers)]
    after = judge(job_in(state), seen(RunPhase.WAITING, *pods), FULL, LATE, pods)
    assert (after.state, after.attempt.outcome, after.attempt.lost) == (state, None, None)


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
    assert judged(job, RunPhase.RUNNING, HEAD).attempt.reason is None


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
        (JobState.PENDING, RunPhase.FAILED, f"runtime_env setup failed: {UNREACHED}", AWAY),
        (JobState.PENDING, RunPhase.FAILED, "runtime_env setup failed: 503 Server Error: Slow Down for url", AWAY),
        (JobState.PENDING, RunPhase.FAILED, "runtime_env setup failed: 403 Client Error: x", ReasonCode.RUNTIME_ENV),
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


# --- waiting that is in vain ------------------------------------------------------------------------------------------

PULL = reason(ReasonCode.IMAGE_PULL, "Pod w can't pull image x.", later(1), patience_s=15)


def test_what_stays_the_same_ends_a_job_that_waits_and_a_picture_without_a_view_of_it_does_not() -> None:
    job = judge(job_in(JobState.PENDING), seen(RunPhase.WAITING, HEAD), PULL, later(1))
    assert judge(job, seen(RunPhase.WAITING, HEAD), PULL, later(15)).state is JobState.PENDING
    assert judge(job, seen(RunPhase.WAITING, HEAD), None, later(99)).state is JobState.PENDING
    after = judge(job, seen(RunPhase.WAITING, HEAD), replace(PULL, since=later(16)), later(16))
    assert (after.state, after.attempt.outcome, code_of(after)) == (
        JobState.FINISHING,
        JobOutcome.FAILED,
        ReasonCode.IMAGE_PULL,
    )
    assert judge(job, seen(RunPhase.RUNNING, HEAD), PULL, later(99)).state is JobState.RUNNING


def test_a_head_that_failed_says_what_it_failed_by() -> None:
    crash = reason(ReasonCode.INIT_CRASH, "Init container fetch ended.", LATE, patience_s=0)
    failed = replace(HEAD, phase=PodPhase.FAILED)
    assert code_of(judge(job_in(JobState.PENDING), seen(RunPhase.WAITING, failed), crash, LATE)) is crash.code
    assert code_of(judge(job_in(JobState.PENDING), seen(RunPhase.WAITING, failed), FULL, LATE)) is ReasonCode.HEAD_LOST
    evicted = replace(failed, reason="Evicted")
    assert code_of(judge(job_in(JobState.PENDING), seen(RunPhase.WAITING, evicted), FULL, LATE)) is ReasonCode.EVICTED


@pytest.mark.parametrize(
    ("status", "code"), [("Running", ReasonCode.HEAD_LOST), ("Initializing", ReasonCode.UNSCHEDULABLE)]
)
def test_a_head_that_goes_before_the_start_is_replaced_only_while_the_cluster_is_made(
    status: str, code: ReasonCode
) -> None:
    rayjob = RayJobView("digits-1", "training", "rayjob-uid", deployment_status=status)
    picture = replace(seen(RunPhase.WAITING), rayjob=rayjob)
    gone = replace(HEAD, gone_at=later(7))
    assert code_of(judge(job_in(JobState.PENDING), picture, FULL, LATE, [gone])) is code
    other = replace(HEAD, uid="another")
    assert code_of(judge(job_in(JobState.PENDING), replace(picture, pods=(other,)), FULL, LATE, [gone])) is FULL.code


def test_a_head_that_failed_and_is_gone_says_how_it_failed() -> None:
    rayjob = RayJobView("digits-1", "training", "rayjob-uid", deployment_status="Running")
    main = ContainerView("ray-head", ContainerRole.MAIN, "ray", ContainerState.TERMINATED, termination=Termination(1))
    gone = replace(HEAD, gone_at=later(7), phase=PodPhase.FAILED, containers=(main,))
    after = judge(job_in(JobState.PENDING), replace(seen(RunPhase.WAITING), rayjob=rayjob), FULL, LATE, [gone])
    assert after.attempt.reason
    assert "ray-head ended with exit code 1" in after.attempt.reason.message


# --- never a blind rerun ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("PreemptionByScheduler", ReasonCode.PREEMPTED),
        ("DeletionByTaintManager", ReasonCode.NODE_LOST),
        ("EvictionByEvictionAPI", ReasonCode.EVICTED),
    ],
)
def test_a_head_is_lost_by_what_took_it_also_when_it_is_gone_already(condition: str, code: ReasonCode) -> None:
    going = replace(HEAD, terminating=True, conditions=(PodCondition("DisruptionTarget", True, condition),))
    assert code_of(judged(job_in(JobState.RUNNING), RunPhase.RUNNING, going)) is code
    new = replace(HEAD, uid="another", name="head-2")
    after = judge(job_in(JobState.RUNNING), seen(RunPhase.RUNNING, new), None, LATE, [going])
    assert code_of(after) is code
    assert after.attempt.reason is not None
    assert "start from the beginning" in after.attempt.reason.message


@pytest.mark.parametrize("phase", [RunPhase.SUCCEEDED, RunPhase.FAILED])
def test_a_run_that_ended_on_another_head_is_lost_whatever_it_says(phase: RunPhase) -> None:
    job = job_in(JobState.RUNNING)
    assert code_of(judged(job, phase, replace(HEAD, uid="another"), message="exit code 113")) is ReasonCode.HEAD_LOST
    main = ContainerView("ray", ContainerRole.MAIN, "x", ContainerState.RUNNING, restarts=1)
    assert code_of(judged(job, phase, replace(HEAD, containers=(main,)))) is ReasonCode.HEAD_LOST


@pytest.mark.parametrize("pods", [(), (replace(HEAD, terminating=True),), (replace(HEAD, phase=PodPhase.FAILED),)])
def test_the_cluster_of_a_run_that_succeeded_may_go(pods: tuple[PodView, ...]) -> None:
    assert judged(job_in(JobState.RUNNING), RunPhase.SUCCEEDED, *pods).attempt.outcome is JobOutcome.SUCCEEDED


def test_a_head_that_was_made_after_the_end_changes_nothing() -> None:
    view = RayJobView("x", "training", "u", ended_at=later(3))
    for made, outcome in [(2, JobOutcome.FAILED), (3, JobOutcome.SUCCEEDED)]:
        new = replace(HEAD, uid="another", created_at=later(made))
        after = judge(job_in(JobState.RUNNING), replace(seen(RunPhase.SUCCEEDED, new), rayjob=view), None, LATE)
        assert after.attempt.outcome is outcome


@pytest.mark.parametrize(("submission", "cluster"), [("x-2", "x-a"), ("x-1", "x-2")])
def test_a_run_that_is_submitted_again_is_lost(submission: str, cluster: str) -> None:
    view = RayJobView("x", "training", "u", ray_cluster="x-a", submission_id="x-1")
    job = judge(job_in(JobState.RUNNING), replace(seen(RunPhase.RUNNING, HEAD), rayjob=view), None, LATE)
    assert job.state is JobState.RUNNING
    again = replace(view, submission_id=submission, ray_cluster=cluster)
    for phase in (RunPhase.RUNNING, RunPhase.SUCCEEDED):
        after = judge(job, replace(seen(phase, HEAD), rayjob=again), None, LATE)
        assert code_of(after) is ReasonCode.HEAD_LOST
        assert after.attempt.reason is not None
        assert "x-2" in after.attempt.reason.evidence[0].text


def exited(code: int) -> Job:
    job = job_in(JobState.RUNNING)
    return job.with_attempt(replace(job.attempt, exit_code=code, exited_at=later(5)))


@pytest.mark.parametrize("pods", [(), (replace(HEAD, uid="another"),), (replace(HEAD, terminating=True),)])
def test_an_exit_line_that_was_seen_before_the_head_was_lost_wins(pods: tuple[PodView, ...]) -> None:
    assert judged(exited(0), RunPhase.RUNNING, *pods).attempt.outcome is JobOutcome.SUCCEEDED
    assert code_of(judged(exited(3), RunPhase.RUNNING, *pods)) is ReasonCode.USER_CODE
    assert code_of(judged(exited(143), RunPhase.RUNNING, *pods)) is ReasonCode.HEAD_LOST


def test_a_second_start_that_the_runner_refused_takes_nothing_from_the_first() -> None:
    after = judged(exited(0), RunPhase.FAILED, message="exit code 113")
    assert (after.attempt.outcome, after.attempt.exit_code) == (JobOutcome.SUCCEEDED, 0)
    assert code_of(judged(exited(3), RunPhase.FAILED, message="exit code 113")) is ReasonCode.USER_CODE
    assert code_of(judged(exited(143), RunPhase.FAILED, message="exit code 113")) is ReasonCode.HEAD_LOST


@pytest.mark.parametrize("message", ["exit code 113", "exit code 115", "the driver died"])
def test_an_exit_line_that_comes_late_corrects_what_the_fleet_was_taken_for(message: str) -> None:
    job = judged(job_in(JobState.RUNNING), RunPhase.FAILED, message=message)
    late = job.with_attempt(replace(job.attempt, exit_code=115, exited_at=later(5)))
    after = judged(late, RunPhase.FAILED, message=message)
    assert (code_of(after), after.attempt.outcome) == (ReasonCode.USER_CODE, JobOutcome.FAILED)
    lost = judged(job_in(JobState.RUNNING), RunPhase.RUNNING)
    late = lost.with_attempt(replace(lost.attempt, exit_code=143, exited_at=later(5)))
    assert code_of(judged(late, RunPhase.RUNNING)) is ReasonCode.HEAD_LOST


def test_what_was_written_into_a_head_right_before_it_went_says_how_it_was_lost() -> None:
    condition = PodCondition("DisruptionTarget", True, "DeletionByPodGC", "PodGC: node no longer exists")
    gone = replace(HEAD, phase=PodPhase.FAILED, conditions=(condition,))
    after = judge(job_in(JobState.RUNNING), replace(seen(RunPhase.RUNNING), gone=(gone,)), None, LATE, [HEAD])
    assert code_of(after) is ReasonCode.NODE_LOST


# --- workers ----------------------------------------------------------------------------------------------------------

WORKER = replace(HEAD, uid="w-uid", name="w", role=PodRole.WORKER, machine=1, started_at=AT)
EVICTED = replace(WORKER, phase=PodPhase.FAILED, reason="Evicted", message="low on memory")


def test_a_run_goes_on_without_a_worker_and_succeeds_if_its_driver_does() -> None:
    job = judged(job_in(JobState.RUNNING), RunPhase.RUNNING, HEAD, EVICTED)
    assert job.state is JobState.RUNNING
    assert job.attempt.lost is not None
    job = judged(job, RunPhase.RUNNING, HEAD, replace(WORKER, uid="new"))
    after = judged(job, RunPhase.SUCCEEDED, HEAD)
    assert (after.attempt.outcome, after.attempt.reason) == (JobOutcome.SUCCEEDED, None)


@pytest.mark.parametrize("message", ["exit code 1", "the driver died"])
def test_a_driver_that_fails_after_a_worker_was_lost_failed_by_that(message: str) -> None:
    job = judged(job_in(JobState.RUNNING), RunPhase.RUNNING, HEAD, EVICTED)
    after = judged(job, RunPhase.FAILED, HEAD, message=message)
    assert code_of(after) is ReasonCode.EVICTED
    assert after.attempt.reason is not None
    assert "low on memory" in after.attempt.reason.message
    sources = {each.source for each in after.attempt.reason.evidence}
    assert (EvidenceSource.EXIT_CODE in sources) == (message == "exit code 1")


def test_a_worker_that_is_missing_in_the_next_picture_was_lost() -> None:
    after = judge(job_in(JobState.RUNNING), seen(RunPhase.RUNNING, HEAD), None, LATE, [HEAD, WORKER])
    assert after.attempt.lost is not None
    assert after.attempt.lost.code is ReasonCode.EVICTED
    ended = judge(exited(1), seen(RunPhase.RUNNING, HEAD), None, LATE, [HEAD, WORKER])
    assert ended.attempt.lost is None


def test_a_head_that_was_killed_in_the_picture_of_the_end_explains_it() -> None:
    killed = ContainerView(
        "ray", ContainerRole.MAIN, "x", ContainerState.TERMINATED, termination=Termination(137, reason="OOMKilled")
    )
    head = replace(HEAD, phase=PodPhase.FAILED, containers=(killed,))
    for phase in (RunPhase.RUNNING, RunPhase.FAILED):
        assert code_of(judged(job_in(JobState.RUNNING), phase, head, message="x")) is ReasonCode.OOM_KILLED


# --- what others do to a run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING])
def test_a_run_that_others_delete_or_replace_ends_at_once(state: JobState) -> None:
    view = RayJobView("x", "training", "u", deletion_requested_at=later(3))
    gone = replace(seen(RunPhase.WAITING, replace(HEAD, terminating=True)), rayjob=view)
    assert code_of(judge(job_in(state), gone, FULL, LATE)) is ReasonCode.DELETED_OUTSIDE
    job = job_in(state)
    job = job.with_attempt(replace(job.attempt, run=RunIdentity("x", "training", "first")))
    other = replace(seen(RunPhase.WAITING, HEAD), rayjob=replace(view, deletion_requested_at=None), uid="u")
    after = judge(job, other, FULL, LATE)
    assert code_of(after) is ReasonCode.DELETED_OUTSIDE
    assert after.attempt.reason is not None
    assert "replaced" in after.attempt.reason.message


def removed(phase: RunPhase, view: RayJobView | None) -> RunSeen:
    return replace(seen(phase), at=later(10), rayjob=view)


LEAVES = RayJobView("x", "training", "u", deletion_requested_at=later(9))


@pytest.mark.parametrize("gone", [removed(RunPhase.RUNNING, LEAVES), removed(RunPhase.ABSENT, None)])
def test_a_head_that_is_seen_to_go_before_its_rayjob_was_deleted_with_it(gone: RunSeen) -> None:
    """As everything in a namespace that is deleted goes, in no order."""
    lost = judged(job_in(JobState.RUNNING), RunPhase.RUNNING, replace(HEAD, terminating=True))
    assert code_of(lost) is ReasonCode.HEAD_LOST
    after = judge(lost, gone, None, later(10))
    assert (after.state, code_of(after)) == (JobState.FINISHING, ReasonCode.DELETED_OUTSIDE)


def test_what_we_delete_ourselves_changes_no_reason() -> None:
    lost = judged(job_in(JobState.RUNNING), RunPhase.RUNNING, replace(HEAD, terminating=True))
    assert lost.attempt.teardown is not None
    ours = replace(lost.attempt.teardown, state=TeardownState.DELETING)
    lost = lost.with_attempt(replace(lost.attempt, teardown=ours))
    assert code_of(judge(lost, removed(RunPhase.RUNNING, LEAVES), None, later(10))) is ReasonCode.HEAD_LOST


def test_a_head_that_went_alone_stays_the_reason() -> None:
    lost = judged(job_in(JobState.RUNNING), RunPhase.RUNNING, replace(HEAD, terminating=True))
    still_there = removed(RunPhase.RUNNING, replace(LEAVES, deletion_requested_at=None))
    assert code_of(judge(lost, still_there, None, later(10))) is ReasonCode.HEAD_LOST
