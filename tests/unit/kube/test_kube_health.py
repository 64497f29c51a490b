"""What a cluster's health is made of: each part for itself, and nothing that can't be asked taken for a no."""

import json
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from starforge.adapters.kube import access as rights
from starforge.adapters.kube import health as room
from starforge.adapters.kube.access import REVIEWS
from starforge.adapters.kube.checks import RENEWED_WITHIN, REVIEW_SELF
from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.rights import RIGHTS
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain import beside as calls
from starforge.domain.beside import beside
from starforge.domain.health import Access, Finding, FleetProbe, HealthStatus
from starforge.domain.health import HealthCheckKind as Kind
from tests.servers import free_port
from tests.unit.kube.kube_orders import AT
from tests.unit.kube.kube_server import Answer, Query, Server, as_json, serving, status

OK, DEGRADED, DOWN, UNKNOWN = HealthStatus.OK, HealthStatus.DEGRADED, HealthStatus.DOWN, HealthStatus.UNKNOWN
MISSING, FORBIDDEN = status(404, "NotFound"), status(403, "Forbidden")
OPERATOR = "/namespaces/kuberay-system"
DEPLOYMENT = {
    "spec": {"template": {"spec": {"containers": [{"image": "quay.io/kuberay/operator:v1.5.0"}]}}},
    "status": {"availableReplicas": 1},
}


def lease(age: timedelta = timedelta(seconds=5)) -> Answer:
    return as_json({"spec": {"renewTime": (AT - age).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}})


@dataclass
class Cluster:
    """A cluster that is well but for `answers`, which are by the last words of a path, and for rights in `denied`."""

    answers: dict[str, Answer] = field(default_factory=dict)
    denied: frozenset[tuple[str, str]] = frozenset()
    server: Server | None = None

    def __call__(self, _method: str, path: str, _query: Query) -> Answer:
        for ending, answer in self.answers.items():
            if path.endswith(ending):
                return answer
        return self._well(path)

    def _well(self, path: str) -> Answer:
        known: dict[str, Any] = {
            "/version": {"gitVersion": "v1.34.4"},
            "/apis/ray.io": {"versions": [{"groupVersion": "ray.io/v1"}, {"groupVersion": "ray.io/v1alpha1"}]},
            "/apis/ray.io/v1": {"resources": [{"name": "rayclusters"}, {"name": "rayjobs"}]},
            "/apis/ray.io/v1alpha1": {"resources": []},
            "/api/v1/namespaces/ns": {"metadata": {"name": "ns"}},
            REVIEW_SELF: {"status": {"userInfo": {"username": "starforge"}}},
        }
        if path == REVIEWS:
            return as_json({"status": {"allowed": self._allowed()}}, 201)
        if path.endswith("ray-operator-leader"):
            return lease()
        if path.endswith("deployments/kuberay-operator"):
            return as_json(DEPLOYMENT)
        return as_json(known[path]) if path in known else as_json({"status": {"phase": "Bound"}})

    def _allowed(self) -> bool:
        assert self.server is not None
        asked = [body["spec"]["resourceAttributes"] for body in self.server.bodies if body and "spec" in body]
        return (asked[-1]["verb"], asked[-1]["resource"]) not in self.denied


@contextmanager
def probing(cluster: Cluster, *, claims: bool = True) -> Iterator[tuple[KubeFleet, Server]]:
    with serving(cluster) as server:
        cluster.server = server
        config = KubeConfig("ns", api_server=server.url, token="secret", storage_pvc="data" if claims else None)
        fleet = KubeFleet(config, now=lambda: AT)
        yield fleet, server
        fleet.close()


def probe(cluster: Cluster, asked: Access | None = None, *, claims: bool = True) -> FleetProbe:
    with probing(cluster, claims=claims) as (fleet, _):
        return fleet.health(asked)


def found(probed: FleetProbe, kind: Kind) -> Finding:
    [finding] = [one for one in probed.findings if one.kind is kind]
    return finding


def test_all_is_well() -> None:
    probed = probe(Cluster())
    kinds = [Kind.KUBERNETES_API, Kind.RAYJOB_CRD, Kind.OPERATOR, Kind.RBAC, Kind.STORAGE]
    assert [(one.kind, one.status, one.message) for one in probed.findings] == [(kind, OK, None) for kind in kinds]
    assert (probed.kubernetes_version, probed.operator_version, probed.rayjob_api_version) == (
        "v1.34.4", "v1.5.0", "ray.io/v1",
    )  # fmt: skip
    assert probed.access is not None
    assert [(one.verb, one.resource, one.allowed) for one in probed.access.checks] == [
        (right.verb, right.told, True) for right in RIGHTS
    ]
    assert (found(probed, Kind.KUBERNETES_API).seconds or 0) > 0


def test_without_claims_there_is_nothing_to_be_bound() -> None:
    assert Kind.STORAGE not in {one.kind for one in probe(Cluster(), claims=False).findings}


@pytest.mark.parametrize(
    ("answers", "kind", "told_as", "words"),
    [
        ({"/apis/ray.io": MISSING}, Kind.RAYJOB_CRD, DOWN, "not at all"),
        ({"/apis/ray.io/v1": MISSING}, Kind.RAYJOB_CRD, DOWN, "installed not at all"),
        (
            {
                "/apis/ray.io/v1": as_json({"resources": []}),
                "/apis/ray.io/v1alpha1": as_json({"resources": [{"name": "rayjobs"}]}),
            },
            Kind.RAYJOB_CRD, DOWN, "only as ray.io/v1alpha1",
        ),
        ({"/apis/ray.io": status(503)}, Kind.RAYJOB_CRD, UNKNOWN, "can't be asked"),
        ({REVIEW_SELF: status(401, "Unauthorized", "Unauthorized")}, Kind.KUBERNETES_API, DOWN, "does not let us in"),
        ({REVIEW_SELF: MISSING}, Kind.KUBERNETES_API, OK, None),
        ({"/namespaces/ns": MISSING}, Kind.KUBERNETES_API, DOWN, "no namespace ns"),
        ({"/namespaces/ns": FORBIDDEN}, Kind.KUBERNETES_API, OK, None),
        (
            {"/namespaces/ns": as_json({"metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"}})},
            Kind.KUBERNETES_API, DOWN, "is being deleted",
        ),
        ({"/version": status(500)}, Kind.KUBERNETES_API, DOWN, "can't be reached"),
        ({"/version": status(401)}, Kind.KUBERNETES_API, DOWN, "does not let us in"),
        ({"/version": FORBIDDEN}, Kind.KUBERNETES_API, OK, None),
        ({"leader": lease(RENEWED_WITHIN + timedelta(seconds=1))}, Kind.OPERATOR, DOWN, "stopped to renew"),
        ({"leader": FORBIDDEN}, Kind.OPERATOR, OK, None),
        ({"leader": MISSING, "kuberay-operator": as_json({"status": {}})}, Kind.OPERATOR, DOWN, "no Pod"),
        ({"leader": FORBIDDEN, "kuberay-operator": FORBIDDEN}, Kind.OPERATOR, UNKNOWN, "may not read it"),
        ({"claims/data": MISSING}, Kind.STORAGE, DOWN, "create it"),
        ({"claims/data": FORBIDDEN}, Kind.STORAGE, UNKNOWN, "may not read it"),
        ({"claims/data": as_json({"status": {"phase": "Pending"}})}, Kind.STORAGE, DEGRADED, "Pending"),
        ({"claims/data": as_json({"status": {"phase": "Lost"}})}, Kind.STORAGE, DOWN, "Lost"),
        ({REVIEWS: status(500)}, Kind.RBAC, UNKNOWN, "did not say"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_of_its_part(
    answers: dict[str, Answer], kind: Kind, told_as: HealthStatus, words: str | None
) -> None:
    probed = probe(Cluster(answers))
    finding = found(probed, kind)
    assert finding.status is told_as
    assert (finding.message is None) if words is None else (words in str(finding.message))
    if told_as is not OK and kind is not Kind.KUBERNETES_API:
        assert {one.status for one in probed.findings if one.kind is not kind} == {OK}


def test_rights_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "beside", partial(beside, at_once=1))  # so that the last body is what is answered
    probed = probe(Cluster(denied=frozenset({("delete", "pods"), ("list", "events")})))
    finding = found(probed, Kind.RBAC)
    assert (finding.status, finding.message) == (
        DEGRADED, "Our account may not delete pods, list events. Apply deploy/rbac.yaml.",
    )  # fmt: skip
    assert found(probe(Cluster(denied=frozenset({("create", "rayjobs")}))), Kind.RBAC).status is DOWN


def test_rights_that_were_all_there_are_asked_for_again_after_a_minute() -> None:
    with probing(Cluster()) as (fleet, server):
        first = fleet.health(None).access
        assert first is not None
        asked = len(server.asked)
        assert fleet.health(first).access == first
        assert REVIEWS not in {path for _, path, _ in server.asked[asked:]}
        old = Access(AT - rights.FRESH, first.checks)
        assert fleet.health(old).access == first
        less = Access(AT, first.checks[1:])
        assert fleet.health(less).access == first


def test_a_cluster_that_can_not_be_reached_says_nothing_of_its_parts() -> None:
    config = KubeConfig("ns", api_server=f"http://127.0.0.1:{free_port()}", token="secret", storage_pvc="data")
    fleet = KubeFleet(config, now=lambda: AT)
    first, second = fleet.health(None), fleet.health(None)
    fleet.close()
    assert found(first, Kind.KUBERNETES_API).status is DOWN
    assert {one.status for one in first.findings[1:]} == {UNKNOWN}
    assert len(first.findings) == 5
    assert first == second  # or each check would be told as a change


def test_a_token_that_is_refused_is_told_as_rights_that_are_gone() -> None:
    probed = probe(Cluster({REVIEW_SELF: status(401, "Unauthorized", "Unauthorized")}))
    finding = found(probed, Kind.RBAC)
    assert finding.status is DOWN
    assert "its token is not good" in str(finding.message)
    assert {one.status for one in probed.findings[1:] if one.kind is not Kind.RBAC} == {UNKNOWN}


def until_all_but_one(running: Collection[Future[Any]], timeout: float) -> None:
    """The time of the parts is over when all but one have ended, however slow the machine is."""
    most = len(running) - (timeout == room.WITHIN_S)
    for number, _ in enumerate(as_completed(running, 60), 1):
        if number == most:
            return


def test_a_part_that_hangs_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REQUEST_S", 60.0)
    monkeypatch.setattr(calls, "wait", until_all_but_one)
    over = threading.Event()

    class Hanging(Cluster):
        def __call__(self, method: str, path: str, query: Query) -> Answer:
            if "/apis/ray.io" in path:
                over.wait(60)
            return super().__call__(method, path, query)

    with probing(Hanging()) as (fleet, _):
        probed = fleet.health(None)
        over.set()
    assert found(probed, Kind.RAYJOB_CRD).status is UNKNOWN
    assert {one.status for one in probed.findings if one.kind is not Kind.RAYJOB_CRD} == {OK}


def test_no_token_is_ever_told() -> None:
    echo = status(401, "Unauthorized", f"bad token sf_{'a' * 16}_{'b' * 64}")
    assert "b" * 64 not in json.dumps([one.message for one in probe(Cluster({REVIEW_SELF: echo})).findings])
