"""What a removal that does not go on is told as."""

from datetime import UTC, datetime, timedelta

import pytest

from starforge.domain.reason import ObjectRef, Reason
from starforge.domain.teardown import STUCK, RemainingObject, Teardown, TeardownState, blocked, looked, pause

AT = datetime(2026, 1, 1, tzinfo=UTC)
LATER = AT + STUCK
KUBERAY = "ray.io/rayjob-finalizer"


def left(
    kind: str, name: str = "x", *finalizers: str, at: datetime | None = AT, where: str | None = "ns"
) -> RemainingObject:
    return RemainingObject(ObjectRef(kind, name, where, f"{name}-uid"), at, finalizers)


def reason_of(*remaining: RemainingObject, at: datetime = LATER) -> Reason:
    found = blocked(remaining, since=AT, at=at)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("what", "sentence", "advice"),
    [
        (
            left("RayJob", "try", KUBERAY),
            f"RayJob try in namespace ns is held by finalizer {KUBERAY}, which the KubeRay operator does not take off.",
            'kubectl patch rayjob try -n ns --type merge -p \'{"metadata":{"finalizers":null}}\'',
        ),
        (
            left("RayCluster", "train", "a/b", "c/d"),
            "RayCluster train in namespace ns is held by finalizers a/b, c/d, which nobody takes off.",
            "kubectl patch raycluster train -n ns",
        ),
        (
            left("Pod", "head"),
            "Pod head in namespace ns was asked to end, and its node has not said that it did.",
            "kubectl delete pod head -n ns --force --grace-period=0",
        ),
        (
            left("Service", "head-svc", at=None),
            "Service head-svc in namespace ns is there still, though nothing holds it.",
            "kubectl delete service head-svc -n ns",
        ),
        (left("Process", "77", at=None, where=None), "Process 77 of this machine does not go.", "by hand"),
    ],
)
def test_what_hangs_is_named_with_what_to_do(what: RemainingObject, sentence: str, advice: str) -> None:
    found = reason_of(what)
    assert found.message == sentence
    assert advice in (found.advice or "")
    assert [each.object for each in found.evidence] == [what.object]


def test_what_holds_the_others_is_named_and_the_others_counted() -> None:
    pod, secret, job = left("Pod", "a"), left("Secret", "b"), left("RayJob", "c", "ray.io/rayjob-finalizer")
    found = reason_of(pod, secret, job)
    assert found.message.startswith("RayJob c ")
    assert found.message.endswith(" 2 more objects hang.")


def test_a_namespace_on_its_way_out_is_told() -> None:
    found = reason_of(left("RayJob", "c", "a/b"), left("Namespace", "ns", where=None))
    assert found.message.startswith("Namespace ns is being deleted. RayJob c in namespace ns is held by finalizer a/b")


def test_nothing_hangs_before_its_time() -> None:
    just = timedelta(milliseconds=1)
    assert blocked([left("Pod")], since=AT, at=LATER - just) is None
    assert blocked([left("Pod", at=AT + just)], since=AT, at=LATER) is None
    assert blocked([left("Pod", at=AT - timedelta(hours=1))], since=AT, at=LATER - just) is None
    assert blocked([left("Pod", at=None)], since=AT, at=LATER) is not None
    assert blocked([], since=AT, at=LATER) is None


def test_what_goes_on_is_no_longer_blocked() -> None:
    before = Teardown(TeardownState.DELETING, AT)
    first = looked(before, [left("RayJob", "c", "a/b")], AT)
    held = looked(first, [left("RayJob", "c", "a/b")], LATER)
    goes_on = looked(held, [left("Pod", at=LATER)], LATER)
    assert (first.state, held.state, goes_on.state) == (
        TeardownState.DELETING,
        TeardownState.BLOCKED,
        TeardownState.DELETING,
    )
    assert goes_on.reason is None
    assert looked(goes_on, [], LATER) == Teardown(TeardownState.RELEASED, AT, released_at=LATER)


def test_a_reason_is_as_old_as_its_story() -> None:
    held = looked(Teardown(TeardownState.DELETING, AT, deleting_since=AT), [left("Pod")], LATER)
    assert looked(held, [left("Pod")], LATER + STUCK) == held


def test_looks_are_quick_at_first_and_then_rarer_up_to_a_minute() -> None:
    removal = Teardown(TeardownState.DELETING, AT, deleting_since=AT)
    waits = [pause(removal, AT + timedelta(seconds=after)).total_seconds() for after in (0, 59, 80, 360, 3600, 86400)]
    assert waits == [2, 2, 4, 32, 60, 60]
    assert pause(Teardown(TeardownState.DELETING, AT), LATER).total_seconds() == 2
