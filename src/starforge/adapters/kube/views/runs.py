"""A RayJob and its Pods as JSON, as what the domain sees of a run."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.pods import condition_view, pod_views
from starforge.adapters.kube.views.times import deletion_requested, parse_time
from starforge.domain.names import RunKey
from starforge.domain.observation import RayClusterView, RayJobView, RunPhase, RunSeen, WorkloadView, rayjob_phase
from starforge.domain.redaction import redact_or_none

MESSAGE_MAX = 20_000
_FAILURE = "ReplicaFailure"


def rayjob_view(rayjob: KubeObject, observed_at: datetime) -> RayJobView:
    metadata, spec, status = rayjob["metadata"], rayjob.get("spec") or {}, rayjob.get("status") or {}
    return RayJobView(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        ray_cluster=status.get("rayClusterName") or None,
        submission_id=status.get("jobId") or None,
        submission_mode=spec.get("submissionMode") or "K8sJobMode",
        job_status=status.get("jobStatus") or None,
        deployment_status=status.get("jobDeploymentStatus") or None,
        reason=redact_or_none(status.get("reason")),
        message=redact_or_none(status.get("message"), MESSAGE_MAX),
        observed_at=observed_at,
        ended_at=parse_time(status.get("endTime")),
        deletion_requested_at=deletion_requested(metadata),
        suspended=spec.get("suspend") is True,
    )


def workload_view(workload: KubeObject) -> WorkloadView:
    """What Kueue says of a RayJob, from the condition that speaks of its quota last."""
    conditions = [condition_view(each) for each in (workload.get("status") or {}).get("conditions") or []]
    told = {each.type: each for each in conditions}
    admitted = bool(told.get("Admitted") and told["Admitted"].status)
    says = next((told[name] for name in ("Admitted", "QuotaReserved") if name in told and told[name].message), None)
    reserved = told.get("QuotaReserved")
    says = reserved if reserved and not reserved.status and reserved.message else says
    return WorkloadView(workload["metadata"]["name"], admitted, says.message if says else None)


def raycluster_view(raycluster: KubeObject) -> RayClusterView:
    metadata, status = raycluster["metadata"], raycluster.get("status") or {}
    conditions = [condition_view(each) for each in status.get("conditions") or []]
    failure = next((each for each in conditions if each.type == _FAILURE and each.status), None)
    leaves_since = deletion_requested(metadata)
    return RayClusterView(metadata["name"], metadata["namespace"], metadata["uid"], failure, leaves_since)


def run_seen(
    run: RunKey,
    rayjob: KubeObject | None,
    pods: Iterable[KubeObject],
    machines: Mapping[str, int],
    at: datetime,
    *,
    raycluster: KubeObject | None = None,
    gone: Iterable[KubeObject] = (),
    workload: KubeObject | None = None,
) -> RunSeen:
    """The run as it is; `rayjob` is None only if it is known that there is none. `gone` are Pods that just went."""
    views, lost = pod_views(pods, machines, at), pod_views(gone, machines, at)
    if rayjob is None:
        return RunSeen(run, RunPhase.ABSENT, at, views, gone=lost)
    view = rayjob_view(rayjob, at)
    phase = rayjob_phase(view.job_status, view.deployment_status)
    cluster = raycluster_view(raycluster) if raycluster else None
    kueues = workload_view(workload) if workload else None
    return RunSeen(run, phase, at, views, view, view.uid, view.message, cluster, lost, kueues)


def newest(objects: Iterable[KubeObject]) -> KubeObject | None:
    return max(objects, key=lambda each: each["metadata"]["creationTimestamp"], default=None)
