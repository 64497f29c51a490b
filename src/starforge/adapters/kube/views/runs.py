"""A RayJob and its Pods as JSON, as what the domain sees of a run."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.pods import pod_views
from starforge.domain.names import RunKey
from starforge.domain.observation import RayJobView, RunPhase, RunSeen, rayjob_phase
from starforge.domain.redaction import redact_or_none

MESSAGE_MAX = 20_000


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
    )


def run_seen(
    run: RunKey, rayjob: KubeObject | None, pods: Iterable[KubeObject], machines: Mapping[str, int], at: datetime
) -> RunSeen:
    """The run as it is; `rayjob` is None only if it is known that there is none."""
    views = pod_views(pods, machines, at)
    if rayjob is None:
        return RunSeen(run, RunPhase.ABSENT, at, views)
    view = rayjob_view(rayjob, at)
    phase = rayjob_phase(view.job_status, view.deployment_status)
    return RunSeen(run, phase, at, views, view, view.uid, view.message)


def newest(rayjobs: Iterable[KubeObject]) -> KubeObject | None:
    return max(rayjobs, key=lambda rayjob: rayjob["metadata"]["creationTimestamp"], default=None)
