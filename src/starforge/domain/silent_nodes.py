"""That the node of a Pod does not answer, as Kubernetes shows it on the Pod long before it takes that away."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from starforge.domain.observation import PodPhase, PodRole, PodView
from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, reason

_ADVICE = "Nothing has to be done if the node returns; whoever runs the cluster can see to it."


def silent(pods: Sequence[PodView], at: datetime) -> Iterator[Reason]:
    """One reason for all Pods whose nodes do not answer, the head's first."""
    found = [(pod, since) for pod in pods if (since := _silent_since(pod))]
    found.sort(key=lambda one: (one[0].role is not PodRole.HEAD, one[1], one[0].name))
    if not found:
        return
    first, since = found[0]
    nodes = sorted({pod.node_name or "" for pod, _ in found} - {first.node_name})
    also = f" The same goes for {', '.join(nodes)}." if nodes else ""
    message = f"{_sentence(first, since)}{also} {_then(first)}"
    evidence = tuple(silence(pod, at) for pod, _ in found[:10])
    yield reason(ReasonCode.NODE_LOST, message, at, advice=_ADVICE, evidence=evidence)


def unanswered(pod: PodView) -> str | None:
    """The sentence that says that the node of a Pod does not answer; None if it does."""
    since = _silent_since(pod)
    return _sentence(pod, since) if since else None


def _sentence(pod: PodView, since: datetime) -> str:
    return f"Node {pod.node_name} of {pod.title} has not answered since {since:%H:%M:%S} UTC."


def _silent_since(pod: PodView) -> datetime | None:
    """Since when a Pod is not ready though all its containers are: a kubelet says neither without the other."""
    known = {condition.type: condition for condition in pod.conditions}
    ready, inside = known.get("Ready"), known.get("ContainersReady")
    if pod.phase is not PodPhase.RUNNING or pod.terminating or pod.node_name is None or ready is None or inside is None:
        return None
    if ready.status or not inside.status or ready.reason:
        return None
    return (ready.changed_at or pod.observed_at).astimezone(UTC)


def _then(pod: PodView) -> str:
    if pod.role is PodRole.HEAD:
        return "The job goes on as soon as it answers; if Kubernetes gives the node up, the job ends with NODE_LOST."
    return "The job goes on; if Kubernetes gives the node up, the machine is lost and the command may fail by it."


def silence(pod: PodView, at: datetime) -> Evidence:
    """What shows that the node of a Pod does not answer."""
    text = "Ready is False while ContainersReady is True"
    return Evidence(EvidenceSource.POD_CONDITION, text, at, pod.ref, "status.conditions[Ready]")
