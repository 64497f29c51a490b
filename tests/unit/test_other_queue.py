"""A job in a queue of the cluster: it waits in that queue's words, and its pre-running clock waits with it."""

from dataclasses import replace

import pytest

from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.job import Job, JobState, advance
from starforge.domain.observation import RayJobView, RunPhase, RunSeen, WorkloadView
from starforge.domain.pending import holds
from starforge.domain.reason import ReasonCode
from starforge.domain.spec import DeadlinesDraft
from starforge.domain.spec_rules import freeze
from starforge.domain.verdict import judge
from tests.unit.examples import AT, DEFAULTS, DRAFT, a_job, later

QUEUED = RayJobView("digits-1", "training", "rayjob-uid", deployment_status="Suspended", suspended=True)
FULL = "insufficient unused quota for nvidia.com/gpu in flavor gpus, 8 more needed"


def a_launched(queue: str | None = "team-a") -> Job:
    draft = replace(DRAFT, queue=queue, deadlines=DeadlinesDraft(600, 300, 0))
    return advance(a_job(freeze(draft, replace(DEFAULTS, has_queues=True))), JobState.PENDING, AT)


def seen(job: Job, *, suspended: bool, workload: WorkloadView | None = None) -> RunSeen:
    rayjob = replace(QUEUED, suspended=suspended)
    return RunSeen(job.run, RunPhase.WAITING, later(10), (), rayjob, rayjob.uid, workload=workload)


def running(job: Job) -> set[ClockKind]:
    return {clock.kind for clock in job.attempt.clocks if clock.state is ClockState.RUNNING}


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (None, "Kueue has not looked at it yet: it is to wait in queue team-a."),
        (WorkloadView("w", False, FULL), f"It waits for its turn in Kueue's queue team-a: {FULL}."),
        (WorkloadView("w", True, "is admitted."), "Kueue gives it its turn in queue team-a: is admitted."),
    ],
)
def test_it_waits_in_the_words_of_its_queue(workload: WorkloadView | None, said: str) -> None:
    job = a_launched()
    why = holds(job, seen(job, suspended=True, workload=workload), (), (), later(10))
    assert (why.code, why.message, why.patience_s) == (ReasonCode.QUEUED, said, None)


def test_the_queue_clock_runs_until_its_turn_and_then_the_pre_running_one() -> None:
    job = a_launched()
    assert running(job) == {ClockKind.QUEUE}
    waits = seen(job, suspended=True)
    job = judge(job, waits, holds(job, waits, (), (), later(10)), later(10))
    assert (job.state, running(job)) == (JobState.PENDING, {ClockKind.QUEUE})
    turn = seen(job, suspended=False)
    job = judge(job, turn, holds(job, turn, (), (), later(20)), later(20))
    assert (job.state, running(job)) == (JobState.PENDING, {ClockKind.PRE_RUNNING})
    [clock] = [clock for clock in job.attempt.clocks if clock.kind is ClockKind.PRE_RUNNING]
    assert clock.due_at == later(320)


def test_one_in_our_queue_has_its_pre_running_clock_from_its_launch_on() -> None:
    assert running(a_launched(queue=None)) == {ClockKind.PRE_RUNNING}


def test_one_that_runs_before_it_was_seen_to_leave_its_queue_has_no_queue_clock() -> None:
    assert ClockKind.QUEUE not in running(advance(a_launched(), JobState.RUNNING, later(30)))
