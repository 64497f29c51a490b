"""What holds a run that waits, in one sentence, from what its Pods and Events say: conditions first, Events second."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from starforge.domain.failfast import OPERATOR_ACTS_S
from starforge.domain.job import Job
from starforge.domain.observation import EventSeen, PodRole, PodView, RayJobView, RunSeen, WorkloadView
from starforge.domain.placing import unplaced
from starforge.domain.reason import Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, reason
from starforge.domain.refused_pods import refused, unmounted
from starforge.domain.silent_nodes import silent
from starforge.domain.stuck_pods import looping, stuck

READY_S = 60.0
"""KubeRay looks every 3 seconds whether all machines are ready, and asks Ray to start the command then."""


def holds(
    job: Job, seen: RunSeen | None, known: Sequence[PodView], events: Sequence[EventSeen], at: datetime
) -> Reason:
    """The one reason to show for a run that waits: what ends it soonest, else the worst, else that it is starting.

    `seen` is None if only Events are new; `known` are all Pods that were seen before, also those that are gone.
    Events are told once, so what they said before, in `job.attempt.reason`, counts until its object has come further.
    """
    if seen and seen.rayjob and seen.rayjob.suspended and job.spec.queue:
        return in_other_queue(job.spec.queue, seen.workload, at)
    pods = seen.pods if seen else [pod for pod in known if pod.gone_at is None]
    gone = seen.gone if seen else ()
    found = [
        *unplaced(job.spec, pods, at),
        *refused(job, pods, events, seen.raycluster if seen else None, at),
        *stuck([*pods, *gone], at),
        *looping([*known, *gone, *pods], at),
        *unmounted(job, pods, events, at),
        *silent(pods, at),
    ]
    ending = [why for why in found if why.patience_s is not None]
    if ending:
        return min(ending, key=lambda why: why.patience_s or 0.0)
    return found[0] if found else next(_idle_operator(job, pods, seen, at), None) or _starting(job, pods, known, at)


def in_other_queue(queue: str, workload: WorkloadView | None, at: datetime) -> Reason:
    """That Kueue keeps a run back, in its own words."""
    if workload is None:
        return reason(ReasonCode.QUEUED, f"Kueue has not looked at it yet: it is to wait in queue {queue}.", at)
    said = (workload.message or "it says nothing about it").rstrip(".")
    if workload.admitted:
        return reason(ReasonCode.QUEUED, f"Kueue gives it its turn in queue {queue}: {said}.", at)
    return reason(ReasonCode.QUEUED, f"It waits for its turn in Kueue's queue {queue}: {said}.", at)


def _starting(job: Job, pods: Sequence[PodView], known: Sequence[PodView], at: datetime) -> Reason:
    machines = [pod for pod in pods if pod.role is not PodRole.SUBMITTER]
    ready, wanted = sum(pod.ready for pod in machines), max(job.spec.machines, len(machines))
    if not machines:
        none = "The cluster has made no Pod in place of those that are gone yet."
        return reason(ReasonCode.STARTING, none if known else "The cluster has not made any Pod yet.", at)
    if ready == wanted:
        return reason(ReasonCode.STARTING, f"All {wanted} machines are ready; the command is being started.", at)
    return reason(ReasonCode.STARTING, f"{ready} of {wanted} machines are ready; the others are starting.", at)


def _idle_operator(job: Job, pods: Sequence[PodView], seen: RunSeen | None, at: datetime) -> Iterator[Reason]:
    """That KubeRay leaves a RayJob as it is for longer than it ever takes."""
    view, launched = (seen or job.attempt).rayjob, job.attempt.launched_at
    if view is None or launched is None or at - launched < timedelta(seconds=OPERATOR_ACTS_S):
        return
    begun = view.deployment_status == "Initializing"
    if view.deployment_status is None and view.job_status is None:
        yield _absent(view, f"has not looked at it for more than {OPERATOR_ACTS_S:.0f} s", "no status", at)
    elif begun and not pods:
        yield _absent(view, f"has made no Pod of it for more than {OPERATOR_ACTS_S:.0f} s", "no Pods", at)
    elif begun and _ready_for(job, pods, at) >= READY_S:
        said = f"has not started its command though all machines are ready for more than {READY_S:.0f} s"
        yield _absent(view, said, "all Pods are ready", at)


def _ready_for(job: Job, pods: Sequence[PodView], at: datetime) -> float:
    """Seconds since all machines of a run are ready; 0 if they aren't."""
    since = [
        condition.changed_at
        for pod in pods
        for condition in pod.conditions
        if condition.type == "Ready" and condition.status and condition.changed_at and pod.role is not PodRole.SUBMITTER
    ]
    return max(0.0, (at - max(since)).total_seconds()) if len(since) >= job.spec.machines else 0.0


def _absent(view: RayJobView, what: str, found: str, at: datetime) -> Reason:
    ref = ObjectRef("RayJob", view.name, view.namespace, view.uid)
    evidence = (Evidence(EvidenceSource.RAYJOB_STATUS, found, at, ref, "status"),)
    advice = "It goes on as soon as KubeRay's operator runs again; whoever runs the cluster can see to it."
    message = f"KubeRay's operator does not act on RayJob {view.name}: it {what}."
    return reason(ReasonCode.OPERATOR_ABSENT, message, at, advice=advice, evidence=evidence)
