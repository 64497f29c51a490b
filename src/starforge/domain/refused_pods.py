"""What keeps Pods from being made, as KubeRay tells it, and their volumes from being mounted, as kubelet does."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from starforge.domain.denials import A_REPEAT, denial
from starforge.domain.failfast import event_patience_s
from starforge.domain.job import Job
from starforge.domain.observation import EventSeen, PodPhase, PodView, RayClusterView
from starforge.domain.placing import machines_of
from starforge.domain.reason import TEXT_MAX, Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, reason

EVENT_COUNTS = timedelta(minutes=3)
"""An Event that was repeated longer ago is history: a new watch is told those of an hour."""
_CAN_NOT_MAKE = frozenset(
    {
        "FailedToCreateHeadPod",
        "FailedToCreateWorkerPod",
        "FailedToCreateRayCluster",
        "FailedToCreateService",
        "FailedToCreateRayJobSubmitter",
        "FailedCreate",
    }
)
_CAN_NOT_MOUNT = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_MISSING = re.compile(r'(?:secret|configmap) "[^"]+" not found|references non-existent (?:secret|config) key')
_KINDS = frozenset({"RayJob", "RayCluster", "Job"})
_SOURCES = frozenset({EvidenceSource.KUBERNETES_EVENT, EvidenceSource.RAYCLUSTER_CONDITION})


def refused(
    job: Job, pods: Sequence[PodView], events: Sequence[EventSeen], cluster: RayClusterView | None, at: datetime
) -> Iterator[Reason]:
    """Why Kubernetes does not let KubeRay make what it wants to make."""
    if cluster and cluster.failure:
        said = cluster.failure.message or cluster.failure.reason or ""
        ref = ObjectRef("RayCluster", cluster.name, cluster.namespace, cluster.uid)
        evidence = Evidence(
            EvidenceSource.RAYCLUSTER_CONDITION, said[:TEXT_MAX], at, ref, f"status.conditions[{cluster.failure.type}]"
        )
        yield _refusal(job, said, evidence, None, at)
        return
    held = job.attempt.reason
    told = [event for event in events if _tells(event, _CAN_NOT_MAKE, at)]
    if told:
        newest = max(told, key=lambda event: event.last_at)
        yield _refusal(job, newest.message, _evidence(newest, at), newest.count, at)
    elif held and cluster is None and len(pods) < job.spec.machines and _is_of(held, _KINDS):
        yield held


def _refusal(job: Job, said: str, evidence: Evidence, count: int | None, at: datetime) -> Reason:
    found = denial(said)
    if found is None:
        message = f"KubeRay can't make what the run needs: {said}"
        return reason(ReasonCode.LAUNCH_FAILED, message, at, evidence=(evidence,))
    patience = found.patience_s if count is None else event_patience_s(found.patience_s, count)
    message = f"KubeRay can't make {_machines(job)}: {found.message}"
    return reason(found.code, message, at, advice=found.advice, evidence=(evidence,), patience_s=patience)


def _machines(job: Job) -> str:
    return " and ".join(
        machines_of(pool.name, pool.series, pool.machines, pool.gpus_per_machine) for pool in job.spec.pools
    )


def unmounted(job: Job, pods: Sequence[PodView], events: Sequence[EventSeen], at: datetime) -> Iterator[Reason]:
    """Why a volume of a Pod can't be mounted, until that Pod goes on."""
    waiting = {pod.uid for pod in pods if pod.phase is PodPhase.PENDING}
    further = {pod.uid for pod in pods} - waiting
    told = [event for event in events if _tells(event, _CAN_NOT_MOUNT, at) and event.object.uid not in further]
    if told:
        newest = max(told, key=lambda event: event.last_at)
        yield _mount_failure(newest, at)
    held = job.attempt.reason
    if held and _is_of(held, {"Pod"}) and any(each.object and each.object.uid in waiting for each in held.evidence):
        yield held


def _mount_failure(event: EventSeen, at: datetime) -> Reason:
    missing = _MISSING.search(event.message)
    code = ReasonCode.MISSING_REFERENCE if missing else ReasonCode.VOLUME
    message = f"A volume of Pod {event.object.name} can't be mounted: {event.message}"
    advice = "Create what is missing, or correct the spec." if missing else "Ask who runs the cluster's storage."
    return reason(
        code,
        message,
        at,
        advice=advice,
        evidence=(_evidence(event, at),),
        patience_s=event_patience_s(A_REPEAT, event.count) if missing else None,
    )


def _tells(event: EventSeen, reasons: frozenset[str], at: datetime) -> bool:
    return event.reason in reasons and at - event.last_at <= EVENT_COUNTS


def _evidence(event: EventSeen, at: datetime) -> Evidence:
    return Evidence(EvidenceSource.KUBERNETES_EVENT, event.message[:TEXT_MAX], at, event.object)


def _is_of(held: Reason, kinds: frozenset[str] | set[str]) -> bool:
    """Whether a reason was told by an Event, or else by what is not seen each time, about such an object."""
    told = [each for each in held.evidence if each.source in _SOURCES]
    return any(each.object and each.object.kind in kinds for each in told)
