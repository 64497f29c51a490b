"""What holds a run that waits, in one sentence."""

from dataclasses import replace
from typing import Any

import pytest

from starforge.domain.names import JobId, RunKey
from starforge.domain.news import kubernetes_entry
from starforge.domain.observation import (
    ContainerRole,
    ContainerState,
    ContainerView,
    EventSeen,
    PodCondition,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    Termination,
)
from starforge.domain.pending import holds
from starforge.domain.reason import EvidenceSource, ObjectRef, ReasonCode
from starforge.domain.timeline import Entry
from tests.unit.examples import AT

POD = PodView(
    "w-uid", "w", "training", PodRuntime.KUBERNETES, PodRole.WORKER, "train", 1, PodPhase.PENDING, AT, AT, gpus=8
)
FULL = PodCondition("PodScheduled", False, "Unschedulable", "0/3 nodes are available")
MAIN = ContainerView("ray", ContainerRole.MAIN, "a/b:1", ContainerState.WAITING)


def waiting(why: str, message: str | None = None, **rest: Any) -> PodView:
    return replace(POD, containers=(replace(MAIN, waiting_reason=why, waiting_message=message, **rest),))


def event(why: str, uid: str = "w-uid") -> Entry:
    of = ObjectRef("Pod", "w", "training", uid)
    return kubernetes_entry(EventSeen(RunKey(JobId("job-1"), 1), "e", of, why, True, "it says why", 1, AT, AT))


def test_nothing_is_wrong_while_it_starts() -> None:
    assert holds([], [], AT).message == "The cluster has not made any Pod yet."
    found = holds([POD, replace(POD, uid="v", ready=True)], [], AT)
    assert (found.code, found.message) == (
        ReasonCode.STARTING,
        "1 of 2 machines are ready; the others are starting.",
    )


def test_machines_that_find_no_node_are_counted_with_what_the_scheduler_says() -> None:
    stuck = replace(POD, conditions=(FULL,))
    found = holds([stuck, replace(stuck, uid="v", pool="eval"), POD], [], AT)
    assert found.code is ReasonCode.UNSCHEDULABLE
    assert found.message == "2 machines of pool eval, train with 8 GPUs each find no node: 0/3 nodes are available"
    assert [evidence.source for evidence in found.evidence] == [EvidenceSource.POD_CONDITION] * 2
    assert found.advice


@pytest.mark.parametrize(
    "condition", [replace(FULL, status=None), replace(FULL, status=True), replace(FULL, type="Ready")]
)
def test_a_condition_that_does_not_say_so_does_not_hold(condition: PodCondition) -> None:
    assert holds([replace(POD, conditions=(condition,))], [], AT).code is ReasonCode.STARTING


@pytest.mark.parametrize(
    ("why", "code"),
    [
        ("ImagePullBackOff", ReasonCode.IMAGE_PULL),
        ("ErrImagePull", ReasonCode.IMAGE_PULL),
        ("InvalidImageName", ReasonCode.IMAGE_PULL),
        ("ErrImageNeverPull", ReasonCode.IMAGE_PULL),
        ("CreateContainerConfigError", ReasonCode.MISSING_REFERENCE),
        ("ContainerCreating", ReasonCode.STARTING),
    ],
)
def test_what_a_container_waits_for(why: str, code: ReasonCode) -> None:
    found = holds([waiting(why, "no such thing")], [], AT)
    assert found.code is code
    if code is not ReasonCode.STARTING:
        assert "a/b:1" in found.message
        assert "no such thing" in found.message


def test_an_init_container_that_fails_is_named_with_its_log() -> None:
    init = ContainerView(
        "fetch", ContainerRole.INIT, "a/b:1", ContainerState.TERMINATED, termination=Termination(exit_code=4)
    )
    found = holds([replace(POD, containers=(init,))], [], AT)
    assert (found.code, found.advice) == (ReasonCode.INIT_CRASH, "Read its log: pod/w/fetch.")
    assert "exit code 4" in found.message
    again = replace(init, state=ContainerState.WAITING, termination=None, previous=Termination(exit_code=4))
    assert holds([replace(POD, containers=(again,))], [], AT).code is ReasonCode.INIT_CRASH
    well = replace(init, termination=Termination(exit_code=0))
    assert holds([replace(POD, containers=(well,))], [], AT).code is ReasonCode.STARTING


def test_a_volume_is_known_from_its_event() -> None:
    found = holds([POD], [event("FailedMount")], AT)
    assert found.code is ReasonCode.VOLUME
    assert "it says why" in found.message
    assert holds([POD], [event("Pulled")], AT).code is ReasonCode.STARTING


def test_what_an_event_said_holds_until_its_pod_goes_on() -> None:
    held = holds([POD], [event("FailedMount")], AT)
    assert holds([POD], [], AT, held) is held
    assert holds([replace(POD, phase=PodPhase.RUNNING)], [], AT, held).code is ReasonCode.STARTING
    assert holds([replace(POD, uid="another")], [], AT, held).code is ReasonCode.STARTING
    assert holds([waiting("ErrImagePull")], [], AT, held).code is ReasonCode.IMAGE_PULL


def test_no_other_reason_is_held() -> None:
    held = holds([replace(POD, conditions=(FULL,))], [], AT)
    assert holds([POD], [], AT, held).code is ReasonCode.STARTING


def test_conditions_come_before_events() -> None:
    assert holds([replace(POD, conditions=(FULL,))], [event("FailedMount")], AT).code is ReasonCode.UNSCHEDULABLE


def test_long_texts_are_bounded() -> None:
    found = holds([waiting("ErrImagePull", "x" * 9000)], [], AT)
    assert len(found.message) == 2000
    assert max(len(evidence.text) for evidence in found.evidence) == 2000
