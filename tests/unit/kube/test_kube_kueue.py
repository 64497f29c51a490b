"""A job that names a queue of the cluster: its label, what Kueue says of it, and what it waits for meanwhile."""

from dataclasses import replace

import pytest

from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.rayjob import render_rayjob
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.views.runs import workload_view
from starforge.adapters.kube.watch.board import Board
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.adapters.kube.watch.uids import Uids
from starforge.domain.errors import FleetRefused
from starforge.domain.observation import RunPhase, WorkloadView
from starforge.domain.reason import ReasonCode
from tests.unit.kube.kube_objects import CREATED, rayjob
from tests.unit.kube.kube_orders import AT, order
from tests.unit.kube.kube_server import Answer, Query, as_json, serving, status

FULL = "couldn't assign flavors to pod set head: insufficient unused quota for nvidia.com/gpu, 8 more needed"


def queued() -> KubeObject:
    return rayjob(deployment="Suspended") | {"spec": {"suspend": True}}


def workload(*conditions: tuple[str, str, str], version: int = 1) -> KubeObject:
    metadata = {
        "name": "rayjob-try-0123456789-1a2b3",
        "namespace": "ns",
        "uid": "workload-uid",
        "creationTimestamp": CREATED,
        "resourceVersion": str(version),
        "ownerReferences": [{"kind": "RayJob", "name": "try-0123456789", "uid": "job-uid"}],
    }
    told = [
        {"type": kind, "status": state, "reason": "Pending", "message": message, "lastTransitionTime": CREATED}
        for kind, state, message in conditions
    ]
    return {"metadata": metadata, "spec": {}, "status": {"conditions": told}}


def test_the_rayjob_bears_kueues_label_where_the_spec_names_a_queue_and_else_not() -> None:
    config = KubeConfig(namespace="ns", image="image")
    plain = render_rayjob(order(), config, served=frozenset())
    asked = order()
    asked = replace(asked, spec=replace(asked.spec, queue="team-a"))
    assert "kueue.x-k8s.io/queue-name" not in plain["metadata"]["labels"]
    labels = render_rayjob(asked, config, served=frozenset())["metadata"]["labels"]
    assert labels["kueue.x-k8s.io/queue-name"] == "team-a"


@pytest.mark.parametrize(
    ("conditions", "view"),
    [
        ([], (False, None)),
        ([("QuotaReserved", "False", FULL)], (False, FULL)),
        ([("QuotaReserved", "True", "reserved"), ("Admitted", "True", "is admitted")], (True, "is admitted")),
        ([("QuotaReserved", "False", FULL), ("Admitted", "False", "has no reservation")], (False, FULL)),
    ],
)
def test_what_kueue_says_of_its_quota_is_read(
    conditions: list[tuple[str, str, str]], view: tuple[bool, str | None]
) -> None:
    assert workload_view(workload(*conditions)) == WorkloadView("rayjob-try-0123456789-1a2b3", *view)


def test_a_workload_belongs_to_the_run_of_its_rayjob_whichever_is_seen_first() -> None:
    board = Board(Uids())
    board.listed(Listed(Kind.WORKLOAD, [workload(("QuotaReserved", "False", FULL))]))
    board.listed(Listed(Kind.POD, []))
    board.listed(Listed(Kind.RAYJOB, [queued()]))
    [seen] = board.take_dirty(AT)
    assert seen.phase is RunPhase.WAITING
    assert seen.rayjob is not None
    assert seen.rayjob.suspended
    assert seen.workload == WorkloadView("rayjob-try-0123456789-1a2b3", False, FULL)
    board.changed(Changed(Kind.WORKLOAD, workload(("Admitted", "True", "is admitted"), version=2)))
    [after] = board.take_dirty(AT)
    assert after.workload is not None
    assert after.workload.admitted


@pytest.mark.parametrize("installed", [True, False])
def test_a_job_for_a_queue_is_refused_where_there_is_no_kueue(installed: bool) -> None:
    def answer(method: str, path: str, _query: Query) -> Answer:
        if "kueue" in path:
            return as_json({"resources": []}) if installed else status(404, "NotFound")
        if "customresourcedefinitions" in path:
            return as_json({"spec": {"versions": []}})
        if method == "GET":
            return status(404, "NotFound")
        return as_json(rayjob(), 201)

    asked = order()
    asked = replace(asked, spec=replace(asked.spec, queue="team-a"))
    with serving(answer) as server:
        config = KubeConfig(namespace="ns", api_server=server.url, token="secret", image="image")
        fleet = KubeFleet(config, now=lambda: AT)
        if installed:
            assert fleet.launch(asked).uid == "job-uid"
            return
        with pytest.raises(FleetRefused, match="has no Kueue") as refused:
            fleet.launch(asked)
        assert refused.value.reason.code is ReasonCode.INVALID_SPEC
        assert not [path for method, path, _ in server.asked if method == "POST"]
