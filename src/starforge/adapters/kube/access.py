"""What our account may do, asked with a SelfSubjectAccessReview for each right."""

from collections.abc import Callable
from datetime import datetime, timedelta

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import UNREACHABLE
from starforge.adapters.kube.rights import RIGHTS, VITAL, Right
from starforge.domain.beside import beside
from starforge.domain.health import Access, AccessCheck, Finding, HealthCheckKind, HealthStatus

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FRESH = timedelta(seconds=60)
"""A right that was there is asked for again after this; one that was not, each time."""
_WITHIN_S = 4.0
_SHOWN = 5
_APPLY = "Apply deploy/rbac.yaml."


class Asker:
    def __init__(self, api: KubeApi, namespace: str, now: Callable[[], datetime]) -> None:
        self._api, self._namespace, self._now = api, namespace, now

    def __call__(self, before: Access | None) -> Access:
        """What it may do; `before` itself while that is fresh and has all that is needed."""
        at = self._now()
        if before and is_whole(before) and at - before.asked_at < FRESH:
            return before
        answers = beside({right: self._asking(right) for right in RIGHTS}, within_s=_WITHIN_S)
        return Access(at, tuple(AccessCheck(one.verb, one.told, answers.get(one)) for one in RIGHTS))

    def _asking(self, right: Right) -> Callable[[], bool | None]:
        return lambda: self._allowed(right)

    def _allowed(self, right: Right) -> bool | None:
        spec = {"resourceAttributes": right.asked(self._namespace)}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        try:
            answer = self._api.post(REVIEWS, review)
        except UNREACHABLE:
            return None  # told as unknown
        allowed = (answer.get("status") or {}).get("allowed")
        return allowed if isinstance(allowed, bool) else None


def is_whole(access: Access) -> bool:
    """Whether it may do all that this version needs."""
    allowed = {(one.verb, one.resource) for one in access.checks if one.allowed}
    return {(one.verb, one.told) for one in RIGHTS} <= allowed


def rights_finding(access: Access) -> Finding:
    kind = HealthCheckKind.RBAC
    denied = [one for one in access.checks if one.allowed is False]
    if denied:
        vital = any(one.resource == "rayjobs.ray.io" and one.verb in VITAL for one in denied)
        more = f" and {len(denied) - _SHOWN} more" if len(denied) > _SHOWN else ""
        named = ", ".join(f"{one.verb} {one.resource}" for one in denied[:_SHOWN])
        message = f"Our account may not {named}{more}. {_APPLY}"
        return Finding(kind, HealthStatus.DOWN if vital else HealthStatus.DEGRADED, message)
    if any(one.allowed is None for one in access.checks):
        return Finding(kind, HealthStatus.UNKNOWN, "Kubernetes did not say for every right whether our account has it.")
    return Finding(kind)
