"""From the JSON of Kubernetes and KubeRay to the reason that a person reads."""

import pytest

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.events import event_seen
from starforge.adapters.kube.views.pods import pod_views
from starforge.adapters.kube.views.runs import raycluster_view, run_seen
from starforge.domain.denials import A_REPEAT, AT_ONCE
from starforge.domain.failfast import NETWORK_S
from starforge.domain.job import JobState, advance
from starforge.domain.losses import loss
from starforge.domain.pending import holds
from starforge.domain.reason import Reason, ReasonCode
from tests.unit.examples import a_job
from tests.unit.kube import pod_statuses as written
from tests.unit.kube.kube_objects import event, raycluster, rayjob
from tests.unit.kube.kube_orders import AT, RUN

QUOTA = (
    'FailedCreateHeadPod\npods "try-0123456789-abcde-head-7xk2p" is forbidden: exceeded quota: gpus, requested: '
    "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)


def held_by(*pods: KubeObject, failure: str | None = None) -> Reason:
    job = advance(a_job(), JobState.PENDING, AT)
    made = raycluster(failure=failure)
    seen = run_seen(RUN, rayjob(deployment="Initializing"), pods, {}, AT, raycluster=made)
    return holds(job, seen, (), (), AT)


@pytest.mark.parametrize(
    ("pod", "code", "patience", "said"),
    [
        (
            written.unscheduled(written.NO_NODE),
            ReasonCode.UNSCHEDULABLE,
            None,
            f"1 machine of pool train with 1 h200 GPU finds no node: {written.NO_NODE.partition('. no new')[0]}",
        ),
        (
            written.unscheduled(written.NO_CLAIM),
            ReasonCode.VOLUME,
            A_REPEAT,
            "Pod pod-a of pool train needs volume claim corpus, which does not exist.",
        ),
        (
            written.waiting("ErrImagePull", written.NOT_FOUND),
            ReasonCode.IMAGE_PULL,
            A_REPEAT,
            f"Pod pod-a of pool train can't pull image image: {written.NOT_FOUND}",
        ),
        (
            written.waiting(
                "ImagePullBackOff", f'Back-off pulling image "{written.IMAGE}": ErrImagePull: {written.NOT_FOUND}'
            ),
            ReasonCode.IMAGE_PULL,
            A_REPEAT,
            f"Pod pod-a of pool train can't pull image image: {written.NOT_FOUND}",
        ),
        (
            written.waiting("ErrImagePull", written.TIMED_OUT),
            ReasonCode.IMAGE_PULL,
            NETWORK_S,
            f"Pod pod-a of pool train can't pull image image: {written.TIMED_OUT}",
        ),
        (
            written.waiting("InvalidImageName", 'Failed to apply default image tag "A B"'),
            ReasonCode.IMAGE_PULL,
            AT_ONCE,
            'Pod pod-a of pool train can\'t read the name of image image: Failed to apply default image tag "A B"',
        ),
        (
            written.waiting("CreateContainerConfigError", 'secret "hub" not found'),
            ReasonCode.MISSING_REFERENCE,
            A_REPEAT,
            'Container main of Pod pod-a of pool train can\'t be configured: secret "hub" not found.',
        ),
        (
            written.waiting("CreateContainerConfigError", "couldn't find key token in Secret ns/hub"),
            ReasonCode.MISSING_REFERENCE,
            A_REPEAT,
            "Container main of Pod pod-a of pool train can't be configured: couldn't find key token in Secret ns/hub.",
        ),
        (
            written.failed_init(),
            ReasonCode.INIT_CRASH,
            AT_ONCE,
            "Init container fetch-capsule of Pod pod-a of pool train ended with exit code 1.",
        ),
        (
            written.waiting("ContainerCreating"),
            ReasonCode.STARTING,
            None,
            "0 of 1 machines are ready; the others are starting.",
        ),
    ],
)
def test_what_holds_a_pod(pod: KubeObject, code: ReasonCode, patience: float | None, said: str) -> None:
    found = held_by(pod)
    assert (found.code, found.patience_s, found.message) == (code, patience, said)


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (written.oom_killed(), ReasonCode.OOM_KILLED),
        (written.evicted(), ReasonCode.EVICTED),
        (written.shut_down(), ReasonCode.NODE_LOST),
        (written.status_unknown(), ReasonCode.NODE_LOST),
        (
            written.disrupted(
                "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"
            ),
            ReasonCode.PREEMPTED,
        ),
        (
            written.disrupted("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"),
            ReasonCode.NODE_LOST,
        ),
        (written.disrupted("DeletionByPodGC", "PodGC: node no longer exists"), ReasonCode.NODE_LOST),
        (written.disrupted("EvictionByEvictionAPI", "Eviction API: evicting"), ReasonCode.EVICTED),
        (written.unreachable(), None),
        (written.waiting("ContainerCreating"), None),
        (written.failed_init(), None),
    ],
)
def test_how_a_pod_was_lost(pod: KubeObject, code: ReasonCode | None) -> None:
    (view,) = pod_views([pod], {}, AT)
    found = loss(view, AT)
    assert (found.code if found else None) is code
    if found:
        assert "node node-b" in found.message
        assert found.evidence[0].object == view.ref


def test_what_kuberay_can_not_make_is_read_from_its_raycluster() -> None:
    found = held_by(failure=QUOTA)
    assert (found.code, found.patience_s) == (ReasonCode.QUOTA, None)
    assert "requests.nvidia.com/gpu=8" in found.message
    assert "7xk2p" not in found.message
    assert held_by().code is ReasonCode.STARTING
    assert raycluster_view(raycluster()).failure is None


def test_an_event_of_kuberay_says_the_same_as_its_raycluster() -> None:
    said = QUOTA.replace("FailedCreateHeadPod\n", "Failed to create head Pod ns/, ")
    told = event("cluster-uid", kind="RayCluster") | {"reason": "FailedToCreateHeadPod", "message": said}
    job = advance(a_job(), JobState.PENDING, AT)
    found = holds(job, None, (), [event_seen(RUN, told)], AT)
    assert (found.code, found.message) == (ReasonCode.QUOTA, held_by(failure=QUOTA).message)


def test_a_rayjob_tells_when_it_ended_and_when_somebody_deleted_it() -> None:
    found = rayjob(job="SUCCEEDED", deployment="Complete")
    found["status"]["endTime"] = "2026-11-29T12:00:00Z"
    found["metadata"] |= {"deletionTimestamp": "2026-11-29T12:00:00Z", "deletionGracePeriodSeconds": 0}
    view = run_seen(RUN, found, [], {}, AT).rayjob
    assert view is not None
    assert (view.ended_at, view.deletion_requested_at) == (AT, AT)
