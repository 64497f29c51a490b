"""What is seen of runs becomes states, log lines with exact numbers, Pods and events, once each."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.observe import PROGRESS_EVERY, Observer
from starforge.domain.changes import Aspect
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.errors import StoreUnavailable
from starforge.domain.job import Job, JobOutcome, JobState
from starforge.domain.logs import DRIVER, LogState
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import (
    ContainerRole,
    ContainerState,
    ContainerView,
    EventSeen,
    FleetHeard,
    PodCondition,
    PodPhase,
    PodView,
    RawLine,
    RunPhase,
    Seen,
)
from starforge.domain.ports import Resume
from starforge.domain.queries import FeedKind
from starforge.domain.reason import ObjectRef, ReasonCode
from starforge.domain.settled import SEEN_EVERY
from starforge.domain.timeline import EventType, PodChanged
from tests.unit.actions.fakes import START, Crash
from tests.unit.actions.world import ANN, HEAD_LOG, World, head, pod

NewWorld = Callable[[], World]
UNSCHEDULABLE = PodCondition("PodScheduled", False, "Unschedulable", "0/3 nodes are available")
TO_RUNNING = [JobState.SUBMITTED, JobState.PACKAGING, JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING]
TO_FINISHING = [*TO_RUNNING, JobState.FINISHING]


def texts(world: World, job: JobId, key: str = DRIVER) -> list[str]:
    return [line.text for line in world.log(job, key)]


def progress_rows(world: World, job: JobId) -> int:
    return sum(row.kind is FeedKind.JOB and Aspect.PROGRESS in row.aspects for row in world.feed() if row.job == job)


def code_of(job: Job) -> ReasonCode | None:
    return job.attempt.reason.code if job.attempt.reason else None


def event(world: World, job: JobId, reason: str, *, count: int = 1, of: str = "head") -> EventSeen:
    of_pod = ObjectRef("Pod", of, "training", f"{of}-uid")
    return EventSeen(world.run(job), f"uid of {reason}", of_pod, reason, True, "it says why", count, START, START)


# --- logs -------------------------------------------------------------------------------------------------------------


def test_the_drivers_lines_come_out_of_frames_and_the_containers_stay(world: World) -> None:
    job = world.running()
    seen = world.lines(job, "one", "two")
    world.observer.observe([replace(seen, lines=(RawLine(b"ray started"), *seen.lines))])
    assert [(line.number, line.text) for line in world.log(job)] == [(1, "one"), (2, "two")]
    assert texts(world, job, HEAD_LOG) == ["ray started"]


def test_wire_lines_are_taken_out_of_the_log(world: World) -> None:
    job = world.running()
    world.say(job, "before", world.progress(3, loss=0.5), world.started(job), "after")
    assert texts(world, job) == ["before", "after"]


def test_a_line_in_pieces_is_whole_over_batches_and_a_restart(world: World) -> None:
    job = world.running()
    first, second = world.lines(job), world.lines(job)
    world.observer.observe([replace(first, lines=(world.frame("a long ", ends=False),))])
    assert texts(world, job) == []
    Observer(world.ports).observe([replace(second, lines=(world.frame("line"),))])
    assert texts(world, job) == ["a long line"]


def test_what_is_held_of_a_line_counts_when_the_stream_ends(world: World) -> None:
    job = world.running()
    begun = replace(world.lines(job, "whole"), lines=(world.frame("whole"), world.frame("half", ends=False)))
    world.observer.observe([begun])
    world.observer.observe([replace(begun, lines=(), closed=True)])
    assert texts(world, job) == ["whole", "half"]
    source = world.source(job, HEAD_LOG)
    assert source is not None
    assert source.state is LogState.CLOSED
    assert source.carry is None


def test_a_stream_that_ends_with_nothing_new_is_closed(world: World) -> None:
    job = world.running()
    seen = world.lines(job, "one")
    world.observer.observe([seen])
    world.observer.observe([replace(seen, lines=(), closed=True)])
    assert world.observer.resume(world.run(job), HEAD_LOG) == Resume(seen.cursor, closed=True)


def test_resume_knows_where_a_stream_was_left(world: World) -> None:
    job = world.running()
    assert world.observer.resume(world.run(job), HEAD_LOG) == Resume(None)
    seen = world.lines(job, "one")
    world.observer.observe([seen])
    assert Observer(world.ports).resume(world.run(job), HEAD_LOG) == Resume(seen.cursor)


def test_a_batch_that_comes_twice_counts_once(world: World) -> None:
    job = world.running()
    batch: list[Seen] = [
        world.lines(job, "one", world.progress(1, loss=1.5)),
        world.lines(job, "two"),
        world.lines(job, "three"),
    ]
    world.observer.observe(batch)
    world.observer.observe(batch)
    world.observer.observe([*batch, world.lines(job, "four")])
    assert texts(world, job) == ["one", "two", "three", "four"]
    assert len(world.sql.metric_points(world.run(job), None, None, None)) == 1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text("xyz", max_size=3), st.booleans()), max_size=8))
def test_lines_are_numbered_exactly_however_they_come(new_world: NewWorld, said: list[tuple[str, str, bool]]) -> None:
    world = new_world()
    job = world.running()
    batches: list[list[Seen]] = [[]]
    for source, text, cut in said:
        batches[-1].append(world.lines(job, text, source=f"pod/{source}/main"))
        if cut:
            batches.append([])
    for batch in batches:
        Observer(world.ports).observe(batch)
        Observer(world.ports).observe(batch)
    assert [(line.number, line.text) for line in world.log(job)] == [
        (number, text) for number, (_, text, _) in enumerate(said, 1)
    ]


def test_a_commit_that_is_lost_is_repeated_without_gap_or_double(new_world: NewWorld) -> None:
    for at in (1, 2):
        world = new_world()
        job = world.running()
        world.faults.count, world.faults.at = 0, at
        world.faults.error = lambda: StoreUnavailable("It restarts.")
        batch: list[Seen] = [world.lines(job, "one"), world.lines(job, world.exit(job, 0)), world.lines(job, "late")]
        with pytest.raises(StoreUnavailable):
            world.observer.observe(batch)
        world.observer.observe(batch)
        assert texts(world, job) == ["one", "late"]
        assert world.job(job).attempt.exit_code == 0


def test_an_observer_that_dies_anywhere_loses_and_doubles_nothing(new_world: NewWorld) -> None:
    for at in (1, 2):
        world = new_world()
        job = world.pending()
        world.faults.count, world.faults.at = 0, at
        batch: list[Seen] = [world.picture(job, RunPhase.RUNNING, head()), world.lines(job, "one")]
        batch.append(event(world, job, "Pulled"))
        with pytest.raises(Crash):
            world.observer.observe(batch)
        Observer(world.ports).observe(batch)
        assert texts(world, job) == ["one"]
        assert world.states(job) == TO_RUNNING
        assert [entry.type for entry in world.entries(job)].count(EventType.POD_CHANGED) == 1
        assert [entry.type for entry in world.entries(job)].count(EventType.KUBERNETES) == 1


def test_the_exit_line_closes_the_drivers_log(world: World) -> None:
    job = world.running()
    world.say(job, "last", world.exit(job, 0))
    world.say(job, "of somebody else")
    assert texts(world, job) == ["last"]
    source = world.source(job)
    assert source is not None
    assert source.state is LogState.CLOSED


def test_lines_that_come_after_the_logs_were_closed_are_dropped(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 3
    world.work()
    world.say(job, "late", source="pod/other/main")
    assert world.source(job, "pod/other/main") is None
    world.settle(20)
    assert world.job(job).ended


def test_bytes_that_are_no_text_are_marked_and_kept(world: World) -> None:
    job = world.running()
    broken = RawLine(world.frame("x").data + b"\xff")
    world.observer.observe([replace(world.lines(job), lines=(broken,))])
    (line,) = world.log(job)
    assert line.text == "x\ufffd"
    assert [mark.name for mark in line.marks] == ["INVALID_UTF8"]


# --- messages ---------------------------------------------------------------------------------------------------------


def test_started_moves_the_job_to_running(world: World) -> None:
    job = world.pending()
    world.say(job, world.started(job))
    assert world.states(job) == TO_RUNNING
    clocks = {clock.kind: clock.state for clock in world.job(job).attempt.clocks}
    assert clocks[ClockKind.PRE_RUNNING] is ClockState.STOPPED


@pytest.mark.parametrize("kind", ["started", "exit", "refused"])
def test_messages_without_the_nonce_are_ordinary_lines(world: World, kind: str) -> None:
    job = world.pending()
    honest = {"started": world.started(job), "exit": world.exit(job, 0), "refused": world.refused(job, "claimed")}[kind]
    forged = honest.replace(world.fleet.orders[world.run(job)].nonce, "f" * 32)
    world.say(job, forged)
    assert world.job(job).state is JobState.PENDING
    assert world.job(job).attempt.exit_code is None
    assert texts(world, job) == [forged]


@pytest.mark.parametrize(
    ("why", "code"),
    [
        ("claimed", ReasonCode.HEAD_LOST),
        ("unclaimed", ReasonCode.OBJECT_STORE_UNAVAILABLE),
        ("corrupt", ReasonCode.CAPSULE_INVALID),
    ],
)
@pytest.mark.parametrize("line_first", [True, False])
def test_a_refusal_ends_the_attempt_whether_its_line_or_its_exit_code_comes_first(
    world: World, why: str, code: ReasonCode, line_first: bool
) -> None:
    job = world.pending()
    number = {"claimed": 113, "unclaimed": 114, "corrupt": 115}[why]
    line: Seen = world.lines(job, world.refused(job, why))
    status = world.picture(job, RunPhase.FAILED, head(), message=f"Job failed: exit code {number}")
    for seen in [line, status] if line_first else [status, line]:
        world.observer.observe([seen])
    after = world.job(job)
    assert (after.attempt.outcome, code_of(after)) == (JobOutcome.FAILED, code)
    assert JobState.RUNNING not in world.states(job)
    assert world.states(job)[-1] is JobState.FINISHING


@pytest.mark.parametrize("line_first", [True, False])
@pytest.mark.parametrize(
    ("number", "phase", "outcome", "why"),
    [
        (0, RunPhase.SUCCEEDED, JobOutcome.SUCCEEDED, None),
        (3, RunPhase.FAILED, JobOutcome.FAILED, ReasonCode.USER_CODE),
        (113, RunPhase.FAILED, JobOutcome.FAILED, ReasonCode.USER_CODE),
    ],
)
def test_the_exit_line_and_rays_status_come_in_either_order(
    *, world: World, number: int, phase: RunPhase, outcome: JobOutcome, why: ReasonCode | None, line_first: bool
) -> None:
    job = world.pending()
    line: Seen = world.lines(job, "x", world.exit(job, number))
    status = world.picture(job, phase, head(), message=f"exit code {number}" if number else None)
    for seen in [line, status] if line_first else [status, line]:
        world.observer.observe([seen])
    after = world.job(job)
    assert (after.attempt.outcome, code_of(after), after.attempt.exit_code) == (outcome, why, number)
    refused_at_first = number == 113 and not line_first  # until the line says that the command itself ended so
    assert (JobState.RUNNING in world.states(job)) != refused_at_first
    assert world.states(job)[-1] is JobState.FINISHING
    assert after.attempt.exited_at
    assert texts(world, job) == ["x"]


def test_complete_without_success_is_no_success(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.STOPPED, head())
    assert world.job(job).attempt.outcome is JobOutcome.FAILED
    assert code_of(world.job(job)) is ReasonCode.DELETED_OUTSIDE


def test_a_run_that_fails_while_the_command_runs_did_not_fail_before_it(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.FAILED, head(), message="the driver died")
    after = world.job(job)
    assert code_of(after) is ReasonCode.HEAD_LOST
    assert after.attempt.reason is not None
    assert "before" not in after.attempt.reason.message
    assert "the driver died" in after.attempt.reason.message


def test_a_run_that_fails_before_its_command_says_so(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.FAILED, message="no room in the queue")
    assert code_of(world.job(job)) is ReasonCode.LAUNCH_FAILED
    assert JobState.RUNNING not in world.states(job)


def test_a_rayjob_that_kuberay_refuses_is_final(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.INVALID, message="bad spec")
    assert code_of(world.job(job)) is ReasonCode.INVALID_SPEC


# --- progress ---------------------------------------------------------------------------------------------------------


def test_progress_is_told_once_a_second_and_the_newest_always(world: World) -> None:
    job = world.running()
    for step in range(40):
        world.say(job, world.progress(step, loss=step / 2))
        world.observer.tick()
        world.clock.forward(0.1)
    assert progress_rows(world, job) <= 5
    world.clock.forward(PROGRESS_EVERY.total_seconds())
    world.observer.tick()
    newest = [row for row in world.feed() if row.kind is FeedKind.JOB and Aspect.PROGRESS in row.aspects][-1]
    after = world.job(job)
    assert newest.revision == after.revision
    assert after.attempt.progress is not None
    assert after.attempt.progress.step == 39
    assert [point.step for point in world.sql.metric_points(world.run(job), ["loss"], None, None)] == list(range(40))
    before = progress_rows(world, job)
    world.clock.forward(5)
    world.observer.tick()
    assert progress_rows(world, job) == before


def test_progress_after_a_late_telling_waits_its_second_too(world: World) -> None:
    job = world.running()
    world.say(job, world.progress(1))
    world.clock.forward(0.9)
    world.say(job, world.progress(2))
    world.clock.forward(0.1)
    world.observer.tick()
    assert progress_rows(world, job) == 2
    world.clock.forward(0.1)
    world.say(job, world.progress(3))
    assert progress_rows(world, job) == 2


def test_progress_is_stored_at_once_even_if_it_is_not_told(world: World) -> None:
    job = world.running()
    world.say(job, world.progress(1))
    world.say(job, world.progress(2))
    after = world.job(job)
    assert after.attempt.progress is not None
    assert after.attempt.progress.step == 2


# --- Pods and events --------------------------------------------------------------------------------------------------


def test_pods_appear_change_and_go_each_told_once(world: World) -> None:
    job = world.pending()
    waiting = pod("worker", phase=PodPhase.PENDING, ready=False)
    for pods in [(waiting,), (waiting,), (pod("worker"),), (replace(pod("worker"), restarts=1),), (), ()]:
        world.clock.forward(1)
        world.see(job, RunPhase.WAITING, *(replace(each, observed_at=world.clock()) for each in pods))
    said = [entry.message for entry in world.entries(job) if isinstance(entry.detail, PodChanged)]
    assert said == [
        "Pod worker appeared: PENDING.",
        "Pod worker is RUNNING.",
        "Pod worker restarted a container (1 restarts).",
        "Pod worker is gone.",
    ]
    (gone,) = world.pods(job)
    assert gone.gone_at == START + timedelta(seconds=5)


def test_a_kubernetes_event_is_one_entry_with_a_count(world: World) -> None:
    job = world.pending()
    for count in (1, 2, 7):
        world.observer.observe([event(world, job, "BackOff", count=count)])
    (entry,) = [entry for entry in world.entries(job) if entry.type is EventType.KUBERNETES]
    assert entry.count == 7
    assert entry.message == "Pod head: it says why"


def test_a_picture_in_which_nothing_changed_is_written_seldom_and_told_never(world: World) -> None:
    job = world.running()
    for _ in range(20):
        world.clock.forward(SEEN_EVERY.total_seconds() / 5)
        world.see(job, RunPhase.RUNNING, head())
    before = len(world.feed())
    revision = world.job(job).revision
    for _ in range(10):
        world.clock.forward(SEEN_EVERY.total_seconds() / 5)
        world.see(job, RunPhase.RUNNING, head())
    assert len(world.feed()) == before
    assert 1 <= world.job(job).revision - revision <= 4, "every 2.5 to 5 minutes, by its name"


def test_runs_nobody_knows_and_other_attempts_are_ignored(world: World) -> None:
    job = world.pending()
    before = len(world.feed())
    world.observer.observe(
        [
            world.picture(JobId("job-nobody"), RunPhase.FAILED),
            replace(world.picture(job, RunPhase.FAILED), run=RunKey(job, 2)),
            FleetHeard(START),
        ]
    )
    assert len(world.feed()) == before


def test_nothing_is_written_about_a_job_that_has_ended(world: World) -> None:
    job = world.finishing()
    world.settle(5)
    before = len(world.feed())
    assert world.job(job).ended
    world.see(job, RunPhase.ABSENT)
    assert len(world.feed()) == before


# --- reasons while it waits -------------------------------------------------------------------------------------------


def test_machines_that_get_ready_change_the_sentence_without_an_event_each(world: World) -> None:
    job = world.pending()
    for ready in range(5):
        pods = [pod(f"w{number}", ready=number < ready) for number in range(5)]
        world.see(job, RunPhase.WAITING, *pods)
        held = world.job(job).attempt.reason
        assert held is not None
        assert f"{ready} of 5" in held.message
    told = [entry for entry in world.entries(job) if entry.type is EventType.REASON_CHANGED]
    assert len(told) == 1


def test_an_equal_picture_tells_no_new_reason(world: World) -> None:
    job = world.pending()
    stuck = pod("w", phase=PodPhase.PENDING, ready=False, conditions=(UNSCHEDULABLE,))
    world.see(job, RunPhase.WAITING, stuck)
    held = world.job(job).attempt.reason
    before = len(world.feed())
    for _ in range(5):
        world.clock.forward(1)
        world.see(job, RunPhase.WAITING, stuck)
    assert len(world.feed()) == before
    assert world.job(job).attempt.reason == held


def test_a_volume_that_was_told_by_an_event_holds_until_its_pod_goes_on(world: World) -> None:
    job = world.pending()
    waiting = head(phase=PodPhase.PENDING, ready=False)
    world.see(job, RunPhase.WAITING, waiting)
    world.observer.observe([event(world, job, "FailedMount")])
    assert code_of(world.job(job)) is ReasonCode.VOLUME
    world.see(job, RunPhase.WAITING, waiting, pod("w", ready=False))
    assert code_of(world.job(job)) is ReasonCode.VOLUME
    world.see(job, RunPhase.WAITING, head(), pod("w", ready=False))
    assert code_of(world.job(job)) is ReasonCode.STARTING


def test_events_of_a_run_that_runs_do_not_hold_it(world: World) -> None:
    job = world.running()
    world.observer.observe([event(world, job, "FailedMount")])
    assert world.job(job).attempt.reason is None


# --- waiting that is in vain ------------------------------------------------------------------------------------------

PULL = ContainerView(
    "ray", ContainerRole.MAIN, "x:1", ContainerState.WAITING, waiting_reason="ErrImagePull", waiting_message="not found"
)


def no_image(name: str = "w") -> PodView:
    return pod(name, phase=PodPhase.PENDING, ready=False, containers=(PULL,))


def test_an_image_that_does_not_exist_ends_the_job_in_seconds_though_nothing_more_is_told(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.WAITING, head(), no_image())
    for _ in range(14):
        world.clock.forward(1)
        world.observer.tick()
        assert world.job(job).state is JobState.PENDING
    world.clock.forward(1)
    world.observer.tick()
    after = world.job(job)
    assert (after.attempt.outcome, code_of(after)) == (JobOutcome.FAILED, ReasonCode.IMAGE_PULL)
    assert after.attempt.reason is not None
    assert "stayed like this for 15 s" in after.attempt.reason.message
    assert world.states(job)[-1] is JobState.FINISHING
    assert len(world.due()) == 1, "its logs are kept and its cluster goes"


def test_an_image_that_comes_in_time_ends_nothing(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.WAITING, head(), no_image())
    world.clock.forward(10)
    world.see(job, RunPhase.WAITING, head(), pod("w", ready=False))
    world.clock.forward(100)
    world.observer.tick()
    assert world.job(job).state is JobState.PENDING
    assert code_of(world.job(job)) is ReasonCode.STARTING


def test_nothing_ends_by_an_old_picture_while_the_fleet_can_not_be_asked(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.WAITING, head(), no_image())
    world.observer.observe([FleetHeard(world.clock(), "it is silent")])
    world.clock.forward(20)
    world.observer.tick()
    assert world.job(job).state is JobState.PENDING
    world.observer.observe([FleetHeard(world.clock())])
    world.see(job, RunPhase.WAITING, head(), no_image())
    assert code_of(world.job(job)) is ReasonCode.IMAGE_PULL
    assert world.job(job).state is JobState.FINISHING


def test_a_secret_that_stays_missing_ends_the_job_by_its_event(world: World) -> None:
    job = world.pending()
    waiting = head(phase=PodPhase.PENDING, ready=False)
    world.see(job, RunPhase.WAITING, waiting)
    told = replace(event(world, job, "FailedMount"), message='MountVolume.SetUp failed: secret "hub" not found')
    for count in (1, 2, 3, 4):
        assert world.job(job).state is JobState.PENDING
        world.observer.observe([replace(told, count=count)])
        world.observer.tick()
    after = world.job(job)
    assert (after.state, code_of(after)) == (JobState.FINISHING, ReasonCode.MISSING_REFERENCE)


def test_a_reason_that_changes_is_told_each_time(world: World) -> None:
    job = world.pending()
    stuck = pod("w", phase=PodPhase.PENDING, ready=False, conditions=(UNSCHEDULABLE,))
    told = []
    for seen in (stuck, no_image(), pod("w", ready=False)):
        before = len(world.feed())
        world.see(job, RunPhase.WAITING, head(), seen)
        aspects = [row.aspects for row in world.feed()[before:] if row.kind is FeedKind.JOB]
        assert any(Aspect.REASON in each for each in aspects)
        told.append(code_of(world.job(job)))
    assert told == [ReasonCode.UNSCHEDULABLE, ReasonCode.IMAGE_PULL, ReasonCode.STARTING]
    changes = [entry for entry in world.entries(job) if entry.type is EventType.REASON_CHANGED]
    assert len(changes) >= 3


def test_a_worker_that_was_lost_between_two_pictures_explains_what_fails_after_it(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.RUNNING, head(), pod("w", machine=1))
    world.see(job, RunPhase.RUNNING, head(), pod("new", machine=1, ready=False))
    assert world.job(job).state is JobState.RUNNING
    world.say(job, world.exit(job, 1))
    world.see(job, RunPhase.FAILED, head(), message="exit code 1")
    after = world.job(job)
    assert (code_of(after), after.attempt.exit_code) == (ReasonCode.EVICTED, 1)
    assert after.attempt.reason is not None
    assert "Pod w of pool train was deleted" in after.attempt.reason.message
    assert "exit code 1" in after.attempt.reason.message


# --- what is lost -----------------------------------------------------------------------------------------------------


def test_a_rayjob_that_somebody_deletes_ends_the_job(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.ABSENT)
    assert code_of(world.job(job)) is ReasonCode.DELETED_OUTSIDE
    world.settle(30)
    assert world.job(job).state is JobState.FAILED


def test_absence_before_the_launch_says_nothing(world: World) -> None:
    job = world.submit()
    world.fleet.down = "not yet"
    world.work()
    world.see(job, RunPhase.ABSENT)
    assert world.job(job).state is JobState.LAUNCHING


def test_a_run_that_is_seen_before_its_launch_was_written_down_is_known_from_then_on(world: World) -> None:
    job = world.submit()
    world.fleet.during_launch = lambda: world.see(job, RunPhase.WAITING, head(), uid="its uid")
    world.faults.error = Crash
    with pytest.raises(Crash):
        crash_after_launch(world)
    world.fleet.during_launch = None
    assert world.job(job).state is JobState.PENDING
    identity = world.job(job).attempt.run
    assert identity is not None
    assert identity.uid == "its uid"
    world.clock.forward(200)
    world.work()
    world.see(job, RunPhase.ABSENT)
    assert code_of(world.job(job)) is ReasonCode.DELETED_OUTSIDE


def crash_after_launch(world: World) -> None:
    seen = world.fleet.during_launch
    assert seen is not None

    def dies() -> None:
        seen()
        raise Crash

    world.fleet.during_launch = dies
    world.work()


@pytest.mark.parametrize(
    "pods",
    [
        (),
        (head(uid="another"),),
        (head(restarts=1),),
        (head(phase=PodPhase.FAILED),),
        (head(terminating=True),),
    ],
    ids=["gone", "replaced", "restarted", "failed", "terminating"],
)
def test_a_head_that_is_lost_ends_a_run(world: World, pods: tuple[PodView, ...]) -> None:
    job = world.running()
    world.see(job, RunPhase.RUNNING, *pods)
    assert code_of(world.job(job)) is ReasonCode.HEAD_LOST
    assert world.states(job) == TO_FINISHING


def test_a_second_start_that_is_refused_takes_nothing_from_a_command_that_ended(world: World) -> None:
    job = world.running()
    world.say(job, "done", world.exit(job, 0))
    world.say(job, world.refused(job, "claimed"), source="pod/second/ray-head")
    assert world.job(job).state is JobState.RUNNING
    world.see(job, RunPhase.FAILED, head(uid="second"), message="exit code 113")
    assert world.job(job).attempt.outcome is JobOutcome.SUCCEEDED


def test_a_head_that_goes_after_the_command_ended_takes_nothing_from_it(world: World) -> None:
    job = world.running()
    world.say(job, world.exit(job, 0))
    world.see(job, RunPhase.RUNNING, head())
    assert world.job(job).state is JobState.RUNNING
    world.see(job, RunPhase.RUNNING, head(uid="another"))
    assert world.job(job).attempt.outcome is JobOutcome.SUCCEEDED


def test_a_head_that_is_replaced_before_the_command_started_is_no_loss(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.WAITING, head())
    world.see(job, RunPhase.WAITING)
    world.see(job, RunPhase.WAITING, head(uid="second"))
    world.see(job, RunPhase.RUNNING, head(uid="second"))
    assert world.job(job).state is JobState.RUNNING
    world.see(job, RunPhase.RUNNING, head(uid="third"))
    assert code_of(world.job(job)) is ReasonCode.HEAD_LOST


def test_a_head_that_fails_before_the_command_started_ends_the_job_at_once(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.WAITING, head(phase=PodPhase.FAILED, reason="Evicted", message="low on disk"))
    after = world.job(job)
    assert code_of(after) is ReasonCode.EVICTED
    assert after.attempt.reason is not None
    assert "Evicted: low on disk" in after.attempt.reason.message


def test_a_head_that_is_lost_while_a_cancel_waits_ends_as_canceled(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN))
    world.see(job, RunPhase.RUNNING)
    assert world.job(job).attempt.outcome is JobOutcome.CANCELED


def test_nothing_lost_is_judged_while_it_finishes(world: World) -> None:
    job = world.finishing()
    world.see(job, RunPhase.RUNNING, head(uid="another"))
    world.see(job, RunPhase.ABSENT)
    assert world.job(job).attempt.outcome is JobOutcome.SUCCEEDED
    assert code_of(world.job(job)) is None


# --- several things at once -------------------------------------------------------------------------------------------


def test_no_state_is_missed_that_came_and_went_within_a_batch(world: World) -> None:
    job = world.pending()
    world.observer.observe(
        [
            world.picture(job, RunPhase.WAITING, head()),
            world.picture(job, RunPhase.RUNNING, head()),
            world.picture(job, RunPhase.FAILED, head(), message="it died"),
        ]
    )
    assert world.states(job) == TO_FINISHING
    assert world.job(job).attempt.started_at


def test_a_cancel_in_the_middle_of_a_write_is_kept_and_nothing_seen_is_lost(world: World) -> None:
    job, other = world.running(), world.running()
    world.store.interfere = [lambda: cancel(world.ports, job, Wish(ANN))]
    world.observer.observe(
        [
            world.lines(job, "one", world.progress(5)),
            world.lines(other, "two", world.progress(6)),
            world.picture(job, RunPhase.RUNNING, head(), pod("w")),
        ]
    )
    assert world.job(job).attempt.cancellation
    assert texts(world, job) == ["one"]
    assert texts(world, other) == ["two"]
    assert [each.name for each in world.pods(job)] == ["head", "w"]
    progress = world.job(job).attempt.progress
    assert progress is not None
    assert progress.step == 5


def test_logs_that_are_closed_in_the_middle_of_a_write_get_nothing_more(world: World) -> None:
    job = world.running()
    world.say(job, "one", source=HEAD_LOG)
    world.see(job, RunPhase.FAILED, head(), message="exit code 1")
    world.clock.forward(60)
    world.store.interfere = [world.work]
    world.say(job, "late")
    assert texts(world, job) == ["one"]
    source = world.source(job)
    assert source is not None
    assert source.lines == 1
    assert source.state is LogState.TRUNCATED


def test_an_ending_asks_for_the_archive_once_and_absence_for_the_teardown(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 1
    world.work()
    assert world.job(job).state is JobState.FINISHING
    assert world.due() == []
    world.see(job, RunPhase.ABSENT)
    assert len(world.due()) == 1
    world.work()
    assert world.job(job).state is JobState.SUCCEEDED
    assert world.states(job) == [*TO_FINISHING, JobState.SUCCEEDED]


def test_the_observer_forgets_runs_that_are_over(world: World) -> None:
    job = world.running()
    world.say(job, world.progress(1))
    world.say(job, world.progress(2))
    world.say(job, world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    assert (world.observer._told, world.observer._untold) == ({}, set())


def test_updated_at_follows_what_changes(world: World) -> None:
    job = world.pending()
    world.clock.forward(7)
    world.see(job, RunPhase.RUNNING, head())
    assert world.job(job).updated_at == START + timedelta(seconds=7)


@pytest.mark.parametrize("first", ["exit line", "fleet"])
def test_a_command_that_fails_for_want_of_memory_says_so(world: World, first: str) -> None:
    """The kernel may kill a process of the command and leave its container alone."""
    job = world.running()
    end = world.wire(job, type="exit", code=137, signal=9, oom=True, at=world.clock().timestamp())
    if first == "fleet":
        world.see(job, RunPhase.FAILED, head(), message="the job failed")
    world.say(job, end)
    world.see(job, RunPhase.FAILED, head(), message="the job failed")
    why = world.job(job).attempt.reason
    assert why is not None
    assert why.code is ReasonCode.OOM_KILLED
    assert "exit code 137" in why.message
    assert "more memory" in str(why.advice)
