"""Removal of what an attempt had in the cluster: proof, not "delete sent"."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from starforge.domain.names import RunKey
from starforge.domain.reason import Evidence, EvidenceSource, ObjectRef, Reason, ReasonCode, keep_since, reason

STUCK = timedelta(seconds=60)
REMAINING_MAX = 100
HOLDS_TEARDOWN = ReasonCode.TEARDOWN_BLOCKED
"""The code of every reason of a teardown, and of nothing else."""
_SOON, _SELDOM = timedelta(seconds=2), timedelta(seconds=60)


class TeardownState(StrEnum):
    AWAITING_ARCHIVE = "AWAITING_ARCHIVE"
    DELETING = "DELETING"
    BLOCKED = "BLOCKED"
    RELEASED = "RELEASED"


@dataclass(frozen=True)
class RemainingObject:
    """A cluster object that has yet to go, with the finalizers that hold it."""

    object: ObjectRef
    deletion_requested_at: datetime | None = None
    finalizers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """An object of a run that is there right now, and since when.

    `claimed` says that it was certainly made by this installation; if it is not, it is ours if we have its job.
    """

    run: RunKey
    what: RemainingObject
    created_at: datetime
    claimed: bool = True

    @property
    def terminating(self) -> bool:
        return self.what.deletion_requested_at is not None


@dataclass(frozen=True)
class Teardown:
    """`deleting_since` is when what was left was looked at first, by our own clock."""

    state: TeardownState
    started_at: datetime
    remaining: tuple[RemainingObject, ...] = ()
    reason: Reason | None = None
    released_at: datetime | None = None
    deleting_since: datetime | None = None


def looked(
    before: Teardown, remaining: Sequence[RemainingObject], at: datetime, *, refused: Reason | None = None
) -> Teardown:
    """Removal after a look at what is left: RELEASED if nothing is, BLOCKED if something hangs or was `refused`."""
    if not remaining and not refused:
        return Teardown(TeardownState.RELEASED, before.started_at, released_at=at)
    since = before.deleting_since or at
    why = _refused(refused) if refused else blocked(remaining, since=since, at=at)
    return replace(
        before,
        state=TeardownState.BLOCKED if why else TeardownState.DELETING,
        remaining=tuple(remaining[:REMAINING_MAX]),
        reason=keep_since(why, before.reason) if why else None,
        deleting_since=since,
    )


def pause(teardown: Teardown, at: datetime) -> timedelta:
    """How long to wait before the next look: 2 s, and more and more up to a minute for what hangs."""
    hangs_for = at - (teardown.deleting_since or at) - STUCK
    return min(_SOON + max(hangs_for, timedelta()) / 10, _SELDOM)


def blocked(remaining: Sequence[RemainingObject], *, since: datetime, at: datetime) -> Reason | None:
    """Why removal that began at `since` does not go on, by the object that holds it; None while nothing hangs."""
    stuck = [left for left in remaining if at - max(since, left.deletion_requested_at or since) >= STUCK]
    if not stuck:
        return None
    left = min(stuck, key=_rank)
    sentence, advice = _hangs(left)
    more = f" {len(stuck) - 1} more objects hang." if len(stuck) > 1 else ""
    seen = f"deletionTimestamp of {left.deletion_requested_at}, finalizers {list(left.finalizers)}"
    evidence = Evidence(EvidenceSource.CHECK, seen, at, left.object, "metadata")
    message = f"{_place(left, remaining)}{sentence}{more}"
    return reason(HOLDS_TEARDOWN, message, at, advice=advice, evidence=(evidence,))


def _refused(why: Reason) -> Reason:
    message = f"What is left in the cluster can't be removed. {why.message}"
    return replace(why, code=HOLDS_TEARDOWN, message=message, retryable=False)


_KUBERAY_FINALIZER = "ray.io/rayjob-finalizer"
_ORDER = ("RayJob", "RayCluster")
_NAMESPACE = "Namespace"
_NO_FINALIZERS = '{"metadata":{"finalizers":null}}'


def _rank(left: RemainingObject) -> tuple[bool, bool, int, str]:
    """What holds the others comes first; a namespace waits for everything in it."""
    kind = left.object.kind
    place = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return kind == _NAMESPACE, not left.finalizers, place, left.object.name


def _place(left: RemainingObject, remaining: Sequence[RemainingObject]) -> str:
    namespace = next((one.object.name for one in remaining if one.object.kind == _NAMESPACE), None)
    return f"Namespace {namespace} is being deleted. " if namespace and left.object.kind != _NAMESPACE else ""


def _hangs(left: RemainingObject) -> tuple[str, str]:
    """What is wrong with an object that does not go, and what to do."""
    kind, name, namespace = left.object.kind, left.object.name, left.object.namespace
    if namespace is None and kind != _NAMESPACE:
        return f"{kind} {name} of this machine does not go.", "End or remove it by hand, and see what holds it."
    where = f" in namespace {namespace}" if namespace else ""
    what, target = f"{kind} {name}{where}", f"{kind.lower()} {name}" + (f" -n {namespace}" if namespace else "")
    if left.finalizers:
        return _held(what, target, left.finalizers)
    if kind == "Pod" and left.deletion_requested_at:
        advice = f"See whether its node is up; if it is lost for good: kubectl delete {target} --force --grace-period=0"
        return f"{what} was asked to end, and its node has not said that it did.", advice
    advice = f"See that the controllers of the cluster run, or remove it by hand: kubectl delete {target}"
    return f"{what} is there still, though nothing holds it.", advice


def _held(what: str, target: str, finalizers: tuple[str, ...]) -> tuple[str, str]:
    names = f"finalizer {finalizers[0]}" if len(finalizers) == 1 else f"finalizers {', '.join(finalizers)}"
    by_hand = f"kubectl patch {target} --type merge -p '{_NO_FINALIZERS}'"
    if _KUBERAY_FINALIZER in finalizers:
        sentence = f"{what} is held by {names}, which the KubeRay operator does not take off."
        return sentence, f"Start the operator; if it is gone for good, do its part: {by_hand}"
    return f"{what} is held by {names}, which nobody takes off.", f"Start what should, or take it off: {by_hand}"
