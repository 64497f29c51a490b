"""What the scheduler says about machines that it has no node for."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from starforge.domain.denials import A_REPEAT
from starforge.domain.observation import PodCondition, PodView
from starforge.domain.reason import TEXT_MAX, Evidence, EvidenceSource, Reason, ReasonCode, reason
from starforge.domain.spec import JobSpec

_WAITS = frozenset({"Unschedulable", "SchedulingGated"})
_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
_UNBOUND = re.compile(r'unbound immediate PersistentVolumeClaims|persistentvolumeclaim "[^"]+" (?:is being|bound to)')
_PREEMPTION = re.compile(r"[.,]? *(?:no new claims to deallocate, *)?preemption: .*", re.DOTALL)
_WAIT = "It starts by itself as soon as other work ends and a node has room for it; or ask for smaller machines."
_NEVER = "No node is of that kind and open to it: ask for a series that this fleet has, or ask who runs the cluster."

Stuck = tuple[PodView, PodCondition]


def unplaced(spec: JobSpec, pods: Sequence[PodView], at: datetime) -> Iterator[Reason]:
    """That a claim is missing or not bound, or that machines find no node; nothing if all have one."""
    waiting = [(pod, each) for pod in pods for each in pod.conditions if _finds_no_node(each) and not pod.terminating]
    if not waiting:
        return
    for pod, condition in waiting:
        said = condition.message or ""
        claim = _CLAIM.search(said)
        if claim:
            yield _no_claim(claim[1], pod, condition, at)
            return
        if _UNBOUND.search(said):
            yield _unbound(pod, condition, at)
            return
    yield _no_node(spec, waiting, at)


def _finds_no_node(condition: PodCondition) -> bool:
    return condition.type == "PodScheduled" and condition.status is False and condition.reason in _WAITS


def _no_claim(claim: str, pod: PodView, condition: PodCondition, at: datetime) -> Reason:
    message = f"{pod.title} needs volume claim {claim}, which does not exist."
    advice = f"Create PersistentVolumeClaim {claim}, or correct the settings that name it; then retry the job."
    evidence = (_evidence(pod, condition, at),)
    return reason(ReasonCode.VOLUME, message, at, advice=advice, evidence=evidence, patience_s=A_REPEAT)


def _unbound(pod: PodView, condition: PodCondition, at: datetime) -> Reason:
    message = f"{pod.title} waits for its volume claim: {_words(condition)}"
    advice = "It goes on as soon as the claim is bound; ask who runs the cluster."
    return reason(ReasonCode.VOLUME, message, at, advice=advice, evidence=(_evidence(pod, condition, at),))


def _no_node(spec: JobSpec, waiting: Sequence[Stuck], at: datetime) -> Reason:
    said = _words(waiting[0][1])
    names = list(dict.fromkeys(pod.pool for pod, _ in waiting))
    groups = " and ".join(_group(spec, name, [pod for pod, _ in waiting if pod.pool == name]) for name in names)
    verb = "finds" if len(waiting) == 1 else "find"
    advice = _WAIT if "Insufficient" in said or "Too many pods" in said else _NEVER
    evidence = tuple(_evidence(pod, condition, at) for pod, condition in waiting[:5])
    return reason(ReasonCode.UNSCHEDULABLE, f"{groups} {verb} no node: {said}", at, advice=advice, evidence=evidence)


def _group(spec: JobSpec, name: str | None, pods: Sequence[PodView]) -> str:
    pool = next((pool for pool in spec.pools if pool.name == name), None)
    gpus = pods[0].gpus or (pool.gpus_per_machine if pool else 0)
    return machines_of(name or "?", pool.series if pool else "", len(pods), gpus)


def machines_of(pool: str, series: str, machines: int, gpus: int) -> str:
    """Some machines of a pool in words, for example `2 machines of pool rollout with 4 b200 GPUs each`."""
    what = f"{machines} machine{'' if machines == 1 else 's'} of pool {pool} with "
    if not gpus:
        return f"{what}a {series} node".replace("  ", " ")
    size = f"{gpus} {series} GPU{'' if gpus == 1 else 's'}".replace("  ", " ")
    return f"{what}{size}{' each' if machines > 1 else ''}"


def _words(condition: PodCondition) -> str:
    """What the scheduler says, without what it says once more about preemption."""
    return _PREEMPTION.sub("", condition.message or "").strip() or condition.reason or "no node fits"


def _evidence(pod: PodView, condition: PodCondition, at: datetime) -> Evidence:
    path = f"status.conditions[{condition.type}]"
    return Evidence(EvidenceSource.POD_CONDITION, (condition.message or "")[:TEXT_MAX], at, pod.ref, path)
