"""How a Pod was lost, and what the loss of a worker explains."""

from dataclasses import replace
from datetime import timedelta

import pytest

from starforge.domain.endings import user_code
from starforge.domain.job import Attempt
from starforge.domain.losses import EXPLAINS, explained, loss, lost_worker
from starforge.domain.observation import (
    ContainerRole,
    ContainerState,
    ContainerView,
    PodCondition,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RunPhase,
    RunSeen,
    Termination,
)
from starforge.domain.reason import EvidenceSource, ReasonCode
from tests.unit.examples import AT, a_job, later

WORKER = PodView(
    "w-uid",
    "w",
    "training",
    PodRuntime.KUBERNETES,
    PodRole.WORKER,
    "train",
    1,
    PodPhase.RUNNING,
    AT,
    AT,
    node_name="node-b",
    started_at=AT,
)
GOING = replace(WORKER, terminating=True)
DRAINED = PodCondition("DisruptionTarget", True, "EvictionByEvictionAPI", "Eviction API: evicting")
MAIN = ContainerView("ray-worker", ContainerRole.MAIN, "x", ContainerState.TERMINATED)


def killed(why: str, role: ContainerRole = ContainerRole.MAIN) -> PodView:
    ended = replace(MAIN, role=role, termination=Termination(137, reason=why))
    return replace(WORKER, phase=PodPhase.FAILED, containers=(ended,))


@pytest.mark.parametrize(
    ("pod", "code", "said"),
    [
        (killed("OOMKilled"), ReasonCode.OOM_KILLED, "used more memory than its limit and was killed on node node-b"),
        (
            replace(WORKER, phase=PodPhase.FAILED, reason="Evicted", message="The node was low on resource: memory. "),
            ReasonCode.EVICTED,
            "was evicted from node node-b: Evicted: The node was low on resource: memory.",
        ),
        (replace(GOING, conditions=(DRAINED,)), ReasonCode.EVICTED, "evicted from node node-b"),
        (
            replace(GOING, conditions=(replace(DRAINED, reason="PreemptionByScheduler"),)),
            ReasonCode.PREEMPTED,
            "had to make room for a Pod of higher priority on node node-b",
        ),
        (
            replace(GOING, conditions=(replace(DRAINED, reason="DeletionByTaintManager"),)),
            ReasonCode.NODE_LOST,
            "was lost with node node-b",
        ),
        (replace(GOING, conditions=(replace(DRAINED, reason="DeletionByPodGC"),)), ReasonCode.NODE_LOST, "node-b"),
        (
            replace(WORKER, phase=PodPhase.FAILED, reason="Terminated", message="imminent node shutdown."),
            ReasonCode.NODE_LOST,
            "imminent node shutdown",
        ),
        (replace(WORKER, reason="NodeLost"), ReasonCode.NODE_LOST, "node-b"),
        (
            replace(WORKER, conditions=(PodCondition("Ready", None, "NodeStatusUnknown"),)),
            ReasonCode.NODE_LOST,
            "NodeStatusUnknown",
        ),
        (killed("ContainerStatusUnknown"), ReasonCode.NODE_LOST, "ContainerStatusUnknown"),
    ],
)
def test_what_kubernetes_wrote_tells_how_a_pod_was_lost(pod: PodView, code: ReasonCode, said: str) -> None:
    found = loss(pod, AT)
    assert found is not None
    assert found.code is code
    assert found.message.startswith("Pod w of pool train ")
    assert said in found.message
    assert found.advice
    assert found.evidence[0].object == pod.ref


@pytest.mark.parametrize(
    "pod",
    [
        WORKER,
        GOING,
        killed("Error"),
        killed("OOMKilled", ContainerRole.SIDECAR),
        replace(WORKER, reason="Evicted"),
        replace(WORKER, conditions=(replace(DRAINED, status=False),)),
        replace(WORKER, conditions=(replace(DRAINED, status=None),)),
        replace(WORKER, conditions=(PodCondition("Ready", False, "ContainersNotReady"),)),
        replace(WORKER, phase=PodPhase.UNKNOWN),
    ],
)
def test_what_says_nothing_of_it_is_no_loss(pod: PodView) -> None:
    assert loss(pod, AT) is None


def test_what_killed_a_container_says_more_than_what_was_planned_with_its_pod() -> None:
    found = loss(replace(killed("OOMKilled"), conditions=(DRAINED,)), AT)
    assert found is not None
    assert found.code is ReasonCode.OOM_KILLED


# --- workers ----------------------------------------------------------------------------------------------------------


def lost(*pods: PodView, known: tuple[PodView, ...] = (), phase: RunPhase = RunPhase.RUNNING) -> ReasonCode | None:
    found = lost_worker(RunSeen(a_job().run, phase, AT, pods), known, AT)
    return found.code if found else None


def test_a_worker_that_goes_or_is_gone_is_lost_if_it_had_run() -> None:
    assert lost(WORKER, known=(WORKER,)) is None
    assert lost(GOING) is ReasonCode.EVICTED
    assert lost(known=(WORKER,)) is ReasonCode.EVICTED
    assert lost(known=(replace(WORKER, conditions=(replace(DRAINED, reason="DeletionByPodGC"),)),)) is (
        ReasonCode.NODE_LOST
    )
    assert lost(killed("OOMKilled")) is ReasonCode.OOM_KILLED
    assert lost(killed("Error")) is None
    assert lost(known=(replace(WORKER, gone_at=AT),)) is None
    assert lost(replace(GOING, phase=PodPhase.PENDING, started_at=None)) is None
    assert lost(replace(GOING, role=PodRole.HEAD)) is None


def test_the_last_state_of_a_worker_says_more_than_the_one_before() -> None:
    seen = RunSeen(a_job().run, RunPhase.RUNNING, AT, gone=(killed("OOMKilled"),))
    found = lost_worker(seen, [WORKER], AT)
    assert found is not None
    assert found.code is ReasonCode.OOM_KILLED


def test_pods_of_a_run_that_has_ended_go_by_themselves() -> None:
    assert lost(GOING, phase=RunPhase.FAILED) is None
    assert lost(known=(WORKER,), phase=RunPhase.FAILED) is None
    assert lost(killed("OOMKilled"), phase=RunPhase.FAILED) is ReasonCode.OOM_KILLED
    assert lost(replace(killed("OOMKilled"), role=PodRole.HEAD), phase=RunPhase.FAILED) is ReasonCode.OOM_KILLED


def an_attempt(since: float | None) -> Attempt:
    found = loss(replace(GOING, conditions=(DRAINED,)), later(since or 0))
    return replace(a_job().attempt, lost=found if since is not None else None)


def test_a_failure_soon_after_a_loss_is_explained_by_it_with_the_exit_code_as_proof() -> None:
    failed = user_code(1, later(60))
    found = explained(an_attempt(10), failed, later(60))
    assert (found.code, found.retryable, found.since) == (ReasonCode.EVICTED, True, later(60))
    assert found.message.endswith("After that: The command ended with exit code 1.")
    assert {each.source for each in found.evidence} == {EvidenceSource.POD_CONDITION, EvidenceSource.EXIT_CODE}


def test_a_failure_long_after_a_loss_is_the_commands_own() -> None:
    failed = user_code(1, later(60))
    assert explained(an_attempt(None), failed, later(60)) is failed
    late = AT + EXPLAINS + timedelta(seconds=11)
    assert explained(an_attempt(10), failed, late) is failed
