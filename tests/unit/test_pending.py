"""What holds a run that waits, in one sentence, and whether it ends the job before its clock does."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from starforge.domain.denials import A_REPEAT, AT_ONCE
from starforge.domain.failfast import NETWORK_S, SAME_EVENTS
from starforge.domain.job import Job, JobState, advance
from starforge.domain.names import JobId, RunKey
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
    RayClusterView,
    RayJobView,
    RunPhase,
    RunSeen,
    Termination,
)
from starforge.domain.pending import READY_S, holds
from starforge.domain.reason import EvidenceSource, ObjectRef, Reason, ReasonCode, ReasonOwner
from starforge.domain.refused_pods import EVENT_COUNTS
from starforge.domain.spec import PoolDraft
from starforge.domain.spec_rules import freeze
from starforge.domain.stuck_pods import STORE_AWAY
from tests.unit.examples import AT, DEFAULTS, DRAFT, a_job, later

POOLS = (PoolDraft("train", "h200", 1, 1), PoolDraft("rollout", "b200", 2, 4))
POD = PodView(
    "w-uid", "w", "training", PodRuntime.KUBERNETES, PodRole.WORKER, "rollout", 0, PodPhase.PENDING, AT, AT, gpus=4
)
FULL = PodCondition(
    "PodScheduled",
    False,
    "Unschedulable",
    "0/3 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector. "
    "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
)
MAIN = ContainerView("ray", ContainerRole.MAIN, "a/b:1", ContainerState.WAITING)
RAYJOB = RayJobView("digits-1", "training", "rayjob-uid", deployment_status="Initializing")
CLUSTER = RayClusterView("digits-1-abcde", "training", "cluster-uid")
QUOTA = 'pods "x" is forbidden: exceeded quota: gpus, requested: nvidia.com/gpu=4, used: nvidia.com/gpu=8, limited: 8'


def a_pending(held: Reason | None = None) -> Job:
    job = advance(a_job(freeze(replace(DRAFT, pools=POOLS), DEFAULTS)), JobState.PENDING, AT)
    return job.with_attempt(replace(job.attempt, reason=held))


def held_by(
    *pods: PodView, events: tuple[EventSeen, ...] = (), held: Reason | None = None, at: datetime = AT
) -> Reason:
    return holds(a_pending(held), None, pods, events, at)


def pictured(seen: RunSeen, *, held: Reason | None = None, at: datetime = AT) -> Reason:
    return holds(a_pending(held), seen, (), (), at)


def waiting(why: str, message: str | None = None, **rest: Any) -> PodView:
    return replace(POD, containers=(replace(MAIN, waiting_reason=why, waiting_message=message, **rest),))


def event(
    why: str, said: str = "it says why", *, about: ObjectRef | None = None, count: int = 1, at: datetime = AT
) -> EventSeen:
    of = about or ObjectRef("Pod", "w", "training", "w-uid")
    return EventSeen(RunKey(JobId("job-1"), 1), "e", of, why, True, said, count, at, at)


def seen(*pods: PodView, cluster: RayClusterView | None = CLUSTER, rayjob: RayJobView = RAYJOB) -> RunSeen:
    return RunSeen(a_job().run, RunPhase.WAITING, AT, pods, rayjob, raycluster=cluster)


# --- nothing is wrong -------------------------------------------------------------------------------------------------


def test_nothing_is_wrong_while_it_starts() -> None:
    assert held_by().message == "The cluster has not made any Pod yet."
    found = held_by(POD, replace(POD, uid="v", ready=True))
    assert (found.code, found.message) == (
        ReasonCode.STARTING,
        "1 of 3 machines are ready; the others are starting.",
    )
    ready = [replace(POD, uid=uid, ready=True) for uid in "abc"]
    assert held_by(*ready).message == "All 3 machines are ready; the command is being started."
    assert "of 3 machines" in held_by(POD, replace(POD, role=PodRole.SUBMITTER, pool=None)).message


# --- the scheduler ----------------------------------------------------------------------------------------------------


def test_machines_that_find_no_node_are_counted_with_pool_series_and_the_schedulers_words() -> None:
    stuck = replace(POD, conditions=(FULL,))
    found = held_by(stuck, replace(stuck, uid="v"), replace(stuck, uid="h", pool="train", gpus=1))
    assert found.code is ReasonCode.UNSCHEDULABLE
    assert found.message == (
        "2 machines of pool rollout with 4 b200 GPUs each and 1 machine of pool train with 1 h200 GPU find no node: "
        "0/3 nodes are available: 2 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector"
    )
    assert [evidence.source for evidence in found.evidence] == [EvidenceSource.POD_CONDITION] * 3
    assert "preemption" in found.evidence[0].text
    assert (found.whose, found.patience_s) == (ReasonOwner.CLUSTER, None)
    assert "by itself" in (found.advice or "")


def test_a_kind_of_node_that_nobody_has_is_no_matter_of_waiting() -> None:
    said = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    found = held_by(replace(POD, conditions=(replace(FULL, message=said),)))
    assert found.code is ReasonCode.UNSCHEDULABLE
    assert "series" in (found.advice or "")


@pytest.mark.parametrize(
    "condition", [replace(FULL, status=None), replace(FULL, status=True), replace(FULL, type="Ready")]
)
def test_a_condition_that_does_not_say_so_does_not_hold(condition: PodCondition) -> None:
    assert held_by(replace(POD, conditions=(condition,))).code is ReasonCode.STARTING


def test_a_claim_that_does_not_exist_ends_it_soon_and_one_that_is_not_bound_does_not() -> None:
    said = '0/2 nodes are available: persistentvolumeclaim "data" not found. not found'
    missing = held_by(replace(POD, conditions=(replace(FULL, message=said),)))
    assert (missing.code, missing.patience_s) == (ReasonCode.VOLUME, A_REPEAT)
    assert missing.message == "Pod w of pool rollout needs volume claim data, which does not exist."
    said = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    unbound = held_by(replace(POD, conditions=(replace(FULL, message=said),)))
    assert (unbound.code, unbound.patience_s) == (ReasonCode.VOLUME, None)


# --- containers -------------------------------------------------------------------------------------------------------

NOT_FOUND = 'failed to pull and unpack image "a/b:1": failed to resolve reference "a/b:1": a/b:1: not found'
NO_ROUTE = 'failed to do request: Head "https://r/v2": dial tcp 10.0.0.1:443: i/o timeout'


@pytest.mark.parametrize(
    ("why", "said", "code", "patience"),
    [
        ("ErrImagePull", NOT_FOUND, ReasonCode.IMAGE_PULL, A_REPEAT),
        ("ErrImagePull", "pull access denied, authorization failed", ReasonCode.IMAGE_PULL, A_REPEAT),
        ("ErrImagePull", NO_ROUTE, ReasonCode.IMAGE_PULL, NETWORK_S),
        ("InvalidImageName", "couldn't parse image name", ReasonCode.IMAGE_PULL, AT_ONCE),
        ("ErrImageNeverPull", "not present", ReasonCode.IMAGE_PULL, A_REPEAT),
        ("CreateContainerConfigError", 'secret "hub" not found', ReasonCode.MISSING_REFERENCE, A_REPEAT),
        ("CreateContainerError", "context deadline exceeded", ReasonCode.LAUNCH_FAILED, NETWORK_S),
        ("ContainerCreating", "", ReasonCode.STARTING, None),
        ("PodInitializing", "", ReasonCode.STARTING, None),
    ],
)
def test_what_a_container_waits_for(why: str, said: str, code: ReasonCode, patience: float | None) -> None:
    found = held_by(waiting(why, said))
    assert (found.code, found.patience_s) == (code, patience)
    if code is not ReasonCode.STARTING:
        assert "Pod w of pool rollout" in found.message
        assert said in found.message


def test_backing_off_from_an_image_is_the_same_story() -> None:
    failed = held_by(waiting("ErrImagePull", NOT_FOUND))
    backs_off = held_by(waiting("ImagePullBackOff", f'Back-off pulling image "a/b:1": ErrImagePull: {NOT_FOUND}'))
    assert backs_off.message == failed.message == f"Pod w of pool rollout can't pull image a/b:1: {NOT_FOUND}"
    both = held_by(waiting("ErrImagePull", NOT_FOUND), replace(waiting("ImagePullBackOff"), uid="v"))
    assert "and 1 other Pod can't either" in both.message


def an_init(**rest: Any) -> ContainerView:
    return replace(
        ContainerView("fetch", ContainerRole.INIT, "a/b:1", ContainerState.TERMINATED, termination=Termination(4)),
        **rest,
    )


def test_an_init_container_that_fails_is_named_with_its_log() -> None:
    failed = replace(POD, phase=PodPhase.FAILED, containers=(an_init(),))
    found = held_by(failed)
    assert (found.code, found.advice) == (ReasonCode.INIT_CRASH, "Read its log: pod/w/fetch.")
    assert (found.message, found.patience_s) == (
        "Init container fetch of Pod w of pool rollout ended with exit code 4.",
        AT_ONCE,
    )
    assert held_by(replace(failed, terminating=True)).code is ReasonCode.INIT_CRASH
    killed = an_init(termination=Termination(143))
    assert held_by(replace(failed, terminating=True, containers=(killed,))).code is ReasonCode.STARTING
    gone = replace(seen(), gone=(replace(failed, terminating=True),))
    assert pictured(gone).code is ReasonCode.INIT_CRASH
    assert held_by(replace(failed, containers=(an_init(termination=Termination(0)),))).code is ReasonCode.STARTING


@pytest.mark.parametrize(
    ("exit_code", "code", "said"),
    [
        (114, ReasonCode.OBJECT_STORE_UNAVAILABLE, "could not be fetched, as the object store did not give it: init"),
        (115, ReasonCode.CAPSULE_INVALID, "did not arrive as it was built: init"),
    ],
)
def test_an_init_container_that_gets_no_capsule_says_why(exit_code: int, code: ReasonCode, said: str) -> None:
    ended = Termination(exit_code, message="Try 8 of 8 failed\nThe capsule can't be fetched: refused.\n")
    found = held_by(replace(POD, phase=PodPhase.FAILED, containers=(an_init(termination=ended),)))
    assert (found.code, found.patience_s) == (code, AT_ONCE)
    assert said in found.message
    assert found.message.endswith("says: The capsule can't be fetched: refused.")


def test_a_fleet_that_fetches_by_itself_tells_that_the_object_store_is_away() -> None:
    found = held_by(waiting(STORE_AWAY, "The object store answered 503."))
    assert (found.code, found.patience_s) == (ReasonCode.OBJECT_STORE_UNAVAILABLE, None)
    assert found.message == "The object store answered 503."


@pytest.mark.parametrize(("restarts", "patience"), [(1, None), (3, AT_ONCE)])
def test_an_init_container_that_is_started_again_gets_some_tries(restarts: int, patience: float | None) -> None:
    again = an_init(state=ContainerState.WAITING, termination=None, previous=Termination(4), restarts=restarts)
    found = held_by(replace(POD, containers=(again,)))
    assert (found.code, found.patience_s) == (ReasonCode.INIT_CRASH, patience)
    runs = replace(again, state=ContainerState.RUNNING)
    assert held_by(replace(POD, containers=(runs,))).code is ReasonCode.STARTING


def test_a_machine_that_is_too_small_to_start_ends_it_and_an_evicted_one_does_not() -> None:
    killed = replace(MAIN, state=ContainerState.TERMINATED, termination=Termination(137, reason="OOMKilled"))
    found = held_by(replace(POD, phase=PodPhase.FAILED, containers=(killed,)))
    assert (found.code, found.patience_s) == (ReasonCode.OOM_KILLED, AT_ONCE)
    evicted = replace(POD, phase=PodPhase.FAILED, reason="Evicted", containers=(an_init(),))
    assert held_by(evicted).code is ReasonCode.STARTING


def test_ray_that_ends_on_every_machine_ends_it_at_the_third() -> None:
    ended = replace(MAIN, state=ContainerState.TERMINATED, termination=Termination(127, reason="Error"))
    crashed = [replace(POD, uid=uid, phase=PodPhase.FAILED, containers=(ended,), gone_at=AT) for uid in "abc"]
    now = replace(crashed[0], gone_at=None)
    assert held_by(*crashed[:2], now).code is ReasonCode.STARTING
    found = held_by(*crashed[1:], now)
    assert (found.code, found.patience_s) == (ReasonCode.LAUNCH_FAILED, AT_ONCE)
    assert "Ray ended on 3 machines of pool rollout before the command was started, with exit code 127" in found.message
    evicted = replace(crashed[2], reason="Evicted")
    assert held_by(crashed[1], evicted, now).code is ReasonCode.STARTING


# --- what KubeRay can't make ------------------------------------------------------------------------------------------


def failing(said: str) -> RunSeen:
    condition = PodCondition("ReplicaFailure", True, "FailedCreateHeadPod", f"FailedCreateHeadPod\n{said}", AT)
    return seen(cluster=replace(CLUSTER, failure=condition))


def test_a_quota_that_is_used_up_waits_and_says_how_much() -> None:
    found = pictured(failing(QUOTA))
    assert (found.code, found.patience_s, found.whose) == (ReasonCode.QUOTA, None, ReasonOwner.CLUSTER)
    assert "quota gpus of the namespace is used up (requested: nvidia.com/gpu=4" in found.message
    assert (
        "1 machine of pool train with 1 h200 GPU and 2 machines of pool rollout with 4 b200 GPUs each" in found.message
    )
    assert '"x"' not in found.message
    assert found.evidence[0].source is EvidenceSource.RAYCLUSTER_CONDITION


def test_a_quota_is_known_from_an_event_too_and_holds_until_the_cluster_fails_no_more() -> None:
    told = event("FailedToCreateWorkerPod", QUOTA, about=ObjectRef("RayCluster", "c", "training", "cluster-uid"))
    found = held_by(events=(told,))
    assert found.code is ReasonCode.QUOTA
    assert held_by(held=found) is found
    assert pictured(seen(), held=found).code is ReasonCode.STARTING
    pods = [replace(POD, uid=uid) for uid in "abc"]
    assert held_by(*pods, held=found).code is ReasonCode.STARTING


def test_a_webhook_that_denies_is_final_and_one_that_does_not_answer_is_waited_for() -> None:
    denied = pictured(failing('admission webhook "w.x" denied the request: no GPUs on Sundays'))
    assert (denied.code, denied.patience_s) == (ReasonCode.ADMISSION_DENIED, AT_ONCE)
    assert 'admission webhook "w.x" denied it: no GPUs on Sundays' in denied.message
    late = 'Internal error occurred: failed calling webhook "w.x": failed to call webhook: context deadline exceeded'
    silent = pictured(failing(late))
    assert (silent.code, silent.patience_s) == (ReasonCode.API_UNAVAILABLE, None)
    assert "w.x does not answer" in silent.message


def test_what_nobody_knows_is_told_as_it_is() -> None:
    found = pictured(failing("something new"))
    assert (found.code, found.patience_s) == (ReasonCode.LAUNCH_FAILED, None)
    assert "something new" in found.message


# --- volumes ----------------------------------------------------------------------------------------------------------


def test_a_volume_is_known_from_its_event_until_its_pod_goes_on() -> None:
    found = held_by(POD, events=(event("FailedMount"),))
    assert (found.code, found.patience_s) == (ReasonCode.VOLUME, None)
    assert "it says why" in found.message
    assert held_by(POD, events=(event("Pulled"),)).code is ReasonCode.STARTING
    assert held_by(POD, held=found) is found
    assert held_by(replace(POD, phase=PodPhase.RUNNING), held=found).code is ReasonCode.STARTING
    assert held_by(replace(POD, uid="another"), held=found).code is ReasonCode.STARTING
    assert held_by(waiting("ErrImagePull"), held=found).code is ReasonCode.IMAGE_PULL
    assert held_by(replace(POD, phase=PodPhase.RUNNING), events=(event("FailedMount"),)).code is ReasonCode.STARTING


def test_a_missing_secret_ends_it_once_its_event_was_repeated() -> None:
    said = 'MountVolume.SetUp failed for volume "hub" : secret "hub" not found'
    once = held_by(POD, events=(event("FailedMount", said),))
    assert (once.code, once.patience_s) == (ReasonCode.MISSING_REFERENCE, None)
    often = held_by(POD, events=(event("FailedMount", said, count=SAME_EVENTS),), held=once)
    assert (often.code, often.patience_s) == (ReasonCode.MISSING_REFERENCE, AT_ONCE)


def test_an_event_of_long_ago_holds_nothing() -> None:
    old = event("FailedMount", at=AT - EVENT_COUNTS * 2)
    assert held_by(POD, events=(old,)).code is ReasonCode.STARTING


def test_no_other_reason_is_held() -> None:
    held = held_by(replace(POD, conditions=(FULL,)))
    assert held_by(POD, held=held).code is ReasonCode.STARTING


# --- which one is told ------------------------------------------------------------------------------------------------


def test_conditions_come_before_events_and_what_ends_it_before_both() -> None:
    stuck = replace(POD, conditions=(FULL,))
    assert held_by(stuck, events=(event("FailedMount"),)).code is ReasonCode.UNSCHEDULABLE
    broken = replace(waiting("ErrImagePull", NOT_FOUND), uid="v")
    assert held_by(stuck, broken).code is ReasonCode.IMAGE_PULL


def test_long_texts_are_bounded() -> None:
    found = held_by(waiting("ErrImagePull", "x" * 9000))
    assert len(found.message) == 2000
    assert max(len(evidence.text) for evidence in found.evidence) == 2000


# --- an operator that does not act ------------------------------------------------------------------------------------


def test_an_operator_that_never_looked_is_named_after_a_while() -> None:
    fresh = seen(cluster=None, rayjob=replace(RAYJOB, deployment_status=None))
    assert pictured(fresh, at=later(29)).code is ReasonCode.STARTING
    found = pictured(fresh, at=later(30))
    assert (found.code, found.whose) == (ReasonCode.OPERATOR_ABSENT, ReasonOwner.CLUSTER)
    assert "digits-1" in found.message
    assert pictured(fresh, at=later(99)).message == found.message


def test_an_operator_that_stopped_on_the_way_is_named_too() -> None:
    assert pictured(seen(), at=later(30)).code is ReasonCode.OPERATOR_ABSENT
    assert pictured(seen(POD), at=later(300)).code is ReasonCode.STARTING
    ready = PodCondition("Ready", True, changed_at=later(20))
    pods = [replace(POD, uid=uid, ready=True, conditions=(ready,)) for uid in "abc"]
    assert pictured(seen(*pods), at=later(20 + READY_S - 1)).code is ReasonCode.STARTING
    assert pictured(seen(*pods), at=later(20 + READY_S)).code is ReasonCode.OPERATOR_ABSENT
    submits = seen(*pods, rayjob=replace(RAYJOB, deployment_status="Running"))
    assert pictured(submits, at=later(999)).code is ReasonCode.STARTING


def test_a_fleet_without_rayjobs_has_no_operator() -> None:
    assert held_by(at=later(999)).code is ReasonCode.STARTING
