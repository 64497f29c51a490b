"""Health of a real cluster: what it is, what our account may do, and an account that may do nothing."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.rights import RIGHTS
from starforge.adapters.kube.served import API_VERSION
from starforge.domain.health import Finding, FleetProbe
from starforge.domain.health import HealthCheckKind as Kind
from starforge.domain.health import HealthStatus as Status
from tests.e2e.conftest import Cluster
from tests.servers import free_port

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]


@pytest.fixture
def fleet(cluster: Cluster) -> Iterator[KubeFleet]:
    found = KubeFleet(replace(cluster.config, storage_pvc=os.environ.get("FORGE_K8S_STORAGE_PVC")))
    yield found
    found.close()


def found(probe: FleetProbe, kind: Kind) -> Finding:
    [finding] = [one for one in probe.findings if one.kind is kind]
    return finding


def test_a_cluster_that_works_says_so(fleet: KubeFleet) -> None:
    probe = fleet.health()
    told = {one.kind: (one.status, one.message) for one in probe.findings}
    for kind in (Kind.KUBERNETES_API, Kind.RAYJOB_CRD, Kind.RBAC):
        assert told[kind] == (Status.OK, None)
    assert told.get(Kind.STORAGE, (Status.OK, None)) == (Status.OK, None)
    assert probe.kubernetes_version is not None
    assert probe.kubernetes_version.startswith("v1.")
    assert probe.rayjob_api_version == API_VERSION


def test_the_account_has_each_right_and_is_told_of_each(fleet: KubeFleet) -> None:
    access = fleet.health().access
    assert access is not None
    assert {(one.verb, one.resource): one.allowed for one in access.checks} == {
        (right.verb, right.told): True for right in RIGHTS
    }


def test_the_operator_is_seen_or_said_to_be_out_of_sight(fleet: KubeFleet) -> None:
    operator = found(fleet.health(), Kind.OPERATOR)
    assert operator.status in (Status.OK, Status.UNKNOWN)
    if operator.status is Status.UNKNOWN:
        assert "may not read it" in str(operator.message)


def test_a_namespace_that_is_not_ours_is_told_by_each_right(cluster: Cluster) -> None:
    elsewhere = KubeFleet(replace(cluster.config, namespace="kube-public"))
    probe = elsewhere.health()
    elsewhere.close()
    assert found(probe, Kind.RBAC).status is Status.DOWN
    assert "create rayjobs.ray.io" in str(found(probe, Kind.RBAC).message)
    assert found(probe, Kind.RAYJOB_CRD).status is Status.OK


def test_a_token_that_is_no_good_is_not_let_in(cluster: Cluster) -> None:
    stranger = KubeFleet(replace(cluster.config, token="no.such.token", token_file=None))
    probe = stranger.health()
    stranger.close()
    api = found(probe, Kind.KUBERNETES_API)
    assert (api.status, "no.such.token" in str(api.message)) == (Status.DOWN, False)
    assert found(probe, Kind.RBAC).status is Status.DOWN


def test_a_cluster_that_is_away_is_told_as_such(cluster: Cluster) -> None:
    away = KubeFleet(replace(cluster.config, api_server=f"https://127.0.0.1:{free_port()}"))
    probe = away.health()
    away.close()
    assert found(probe, Kind.KUBERNETES_API).status is Status.DOWN
    assert {one.status for one in probe.findings[1:]} == {Status.UNKNOWN}
