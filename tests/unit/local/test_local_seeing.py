from dataclasses import replace

import pytest

from starforge.adapters.local.rundir import Ending, Phase, Status
from starforge.adapters.local.seeing import seen
from starforge.domain.observation import PodPhase, PodRole, PodRuntime, RunPhase
from tests.unit.local.local_orders import NOON, order, status

RUNNING = status(Phase.RUNNING, admitted_at=1.0, ready_at=2.0, command_at=3.0)
ENDED = replace(RUNNING, phase=Phase.ENDED, ended_at=4.0)


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (None, RunPhase.WAITING),
        (status(Phase.QUEUED), RunPhase.WAITING),
        (status(Phase.STARTING, ready_at=2.0), RunPhase.WAITING),
        (RUNNING, RunPhase.RUNNING),
        (replace(RUNNING, phase=Phase.ENDING, exit_code=0), RunPhase.RUNNING),
        (replace(ENDED, ending=Ending.SUCCEEDED), RunPhase.SUCCEEDED),
        (replace(ENDED, ending=Ending.FAILED), RunPhase.FAILED),
        (replace(ENDED, ending=Ending.STOPPED), RunPhase.STOPPED),
    ],
)
def test_the_phase_follows_the_supervisor(state: Status | None, phase: RunPhase) -> None:
    assert seen(order(), state, NOON).phase is phase


def test_a_lost_head_is_a_failed_pod_under_a_run_that_goes_on() -> None:
    told = seen(order(), replace(ENDED, ending=Ending.HEAD_LOST), NOON)
    assert told.phase is RunPhase.RUNNING
    assert told.pods[0].phase is PodPhase.FAILED


def test_every_machine_is_shown_and_the_first_is_the_head() -> None:
    pods = seen(order(), RUNNING, NOON).pods
    assert [(pod.role, pod.pool, pod.machine, pod.gpus) for pod in pods] == [
        (PodRole.HEAD, "train", 0, 4),
        (PodRole.WORKER, "train", 1, 4),
        (PodRole.WORKER, "eval", 0, 1),
    ]
    assert {pod.runtime for pod in pods} == {PodRuntime.PROCESS}
    assert len({pod.uid for pod in pods}) == 3


def test_a_run_in_the_queue_says_what_it_waits_for() -> None:
    told = seen(order(), status(Phase.QUEUED, message="Waits for 4 GPUs of series h200: 0 of 8 are free."), NOON)
    condition = told.pods[0].conditions[0]
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", False, "Unschedulable")
    assert condition.message == "Waits for 4 GPUs of series h200: 0 of 8 are free."


def test_what_the_fleet_says_of_the_end_is_told_at_the_end_only() -> None:
    assert seen(order(), replace(RUNNING, message="odd"), NOON).message is None
    failed = replace(ENDED, ending=Ending.FAILED, message="The command ended with exit code 3.")
    assert seen(order(), failed, NOON).message == "The command ended with exit code 3."
