"""A node that does not answer, as it is shown on a job while its Pods are there still."""

from dataclasses import replace

import pytest

from starforge.domain.job import Job, JobState, advance
from starforge.domain.observation import PodCondition, PodPhase, PodRole, PodRuntime, PodView, RunPhase, RunSeen
from starforge.domain.pending import holds
from starforge.domain.reason import ReasonCode
from starforge.domain.silent_nodes import silent
from starforge.domain.verdict import judge
from tests.unit.examples import AT, a_job, later

INSIDE = PodCondition("ContainersReady", True, changed_at=AT)
READY = PodCondition("Ready", True, changed_at=AT)
SILENT = PodCondition("Ready", False, changed_at=later(50))
RUNNING = advance(a_job(), JobState.RUNNING, AT)


def pod(name: str, ready: PodCondition, *, role: PodRole = PodRole.WORKER, node: str = "node-b") -> PodView:
    return PodView(
        name, name, "ns", PodRuntime.KUBERNETES, role, "train", 0, PodPhase.RUNNING, AT, AT, ready=ready.status is True,
        node_name=node, conditions=(INSIDE, ready), started_at=AT,
    )  # fmt: skip


HEAD = pod("head", READY, role=PodRole.HEAD, node="node-a")


def after(job: Job, *pods: PodView, seconds: float) -> Job:
    return judge(job, RunSeen(job.run, RunPhase.RUNNING, later(seconds), pods), None, later(seconds), pods)


def test_a_job_runs_on_with_the_reason_until_the_node_answers() -> None:
    held = after(RUNNING, HEAD, pod("w", SILENT), seconds=60)
    assert held.state is JobState.RUNNING
    why = held.attempt.reason
    assert why is not None
    assert (why.code, why.patience_s) == (ReasonCode.NODE_LOST, None)
    assert why.message.startswith("Node node-b of Pod w of pool train has not answered since ")
    assert "The job goes on; if Kubernetes gives the node up, the machine is lost" in why.message
    assert why.evidence[0].path == "status.conditions[Ready]"
    assert after(held, HEAD, pod("w", SILENT), seconds=90).attempt.reason == why
    assert after(held, HEAD, pod("w", READY), seconds=120).attempt.reason is None
    assert after(held, HEAD, pod("w", READY), seconds=120).state is JobState.RUNNING


def test_the_node_of_the_head_comes_first_and_others_are_named() -> None:
    (why,) = silent([pod("w", SILENT), replace(HEAD, conditions=(INSIDE, SILENT))], later(60))
    assert why.message.startswith("Node node-a of Head head of pool train has not answered since ")
    assert "The same goes for node-b." in why.message
    assert "the job ends with NODE_LOST" in why.message


def test_a_job_that_waits_is_held_by_it_too() -> None:
    waiting = advance(a_job(), JobState.PENDING, AT)
    seen = RunSeen(waiting.run, RunPhase.WAITING, later(60), (pod("w", SILENT),))
    assert holds(waiting, seen, (), (), later(60)).code is ReasonCode.NODE_LOST


@pytest.mark.parametrize(
    "other",
    [
        pod("w", READY),
        replace(pod("w", SILENT), conditions=(SILENT, replace(INSIDE, status=False))),
        replace(pod("w", SILENT), terminating=True),
        replace(pod("w", SILENT), phase=PodPhase.PENDING),
        pod("w", replace(SILENT, reason="ReadinessGatesNotReady")),
        replace(pod("w", SILENT), node_name=None),
    ],
)
def test_what_a_kubelet_says_itself_is_no_silence(other: PodView) -> None:
    assert list(silent([other], later(60))) == []
