"""What is listed as ours, what is proven gone, and what is named as left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.rayjob import render_rayjob
from starforge.adapters.kube.rendering.secret import render_secret
from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.names import LABEL_INSTALLATION, JobId, RunKey
from tests.unit.kube.kube_objects import CREATED, pod, rayjob
from tests.unit.kube.kube_orders import AT, CONFIG, RUN, order
from tests.unit.kube.kube_server import Answer, Query, as_json, listed, serving, status
from tests.unit.kube.test_kube_fleet_calls import fleet

US, THEM = "forge-us", "forge-them"
OTHER = RunKey(JobId("job-another"), 2)
NOT_SERVED = Answer((b"404 page not found",), 404)


@dataclass
class Namespace:
    """Lists of objects by the last part of their path, filtered by label as the API server does."""

    objects: Mapping[str, Sequence[KubeObject]] = field(default_factory=dict)
    instead: Mapping[str, Answer] = field(default_factory=dict)

    def __call__(self, method: str, path: str, query: Query) -> Answer:
        kind = path.rpartition("/")[2]
        if kind in self.instead:
            return self.instead[kind]
        if method != "GET":
            return as_json({})
        if path.endswith("/namespaces/ns"):
            return as_json({"metadata": {"name": "ns", "uid": "ns-uid"}})
        wanted = [pair.split("=") for pair in query.get("labelSelector", "").split(",") if pair]
        return listed(*(one for one in self.objects.get(kind, ()) if _has(one, wanted)))


def _has(found: KubeObject, wanted: Sequence[Sequence[str]]) -> bool:
    labels = found["metadata"].get("labels") or {}
    return all(labels.get(name) == text for name, text in wanted)


def of(installation: str | None, found: KubeObject) -> KubeObject:
    if installation:
        found["metadata"]["labels"][LABEL_INSTALLATION] = installation
    return found


def going(found: KubeObject, *finalizers: str) -> KubeObject:
    found["metadata"] |= {"deletionTimestamp": CREATED, "finalizers": list(finalizers)}
    return found


def secret(run: RunKey = RUN) -> KubeObject:
    return {"metadata": rayjob(run=run)["metadata"] | {"uid": "secret-uid"}}


def named(name: str, *, owner: str = "") -> KubeObject:
    owners = [{"kind": "RayJob", "name": owner}] if owner else []
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid", "ownerReferences": owners}}


def test_everything_of_ours_is_listed_whatever_run_it_is_of() -> None:
    objects = {"rayjobs": [rayjob()], "rayclusters": [rayjob()], "pods": [pod("a", run=OTHER)], "secrets": [secret()]}
    with serving(Namespace({kind: [of(US, one) for one in some] for kind, some in objects.items()})) as server:
        found = fleet(server).ours(US)
        assert [(one.run, one.what.object.kind) for one in found] == [
            (RUN, "RayJob"),
            (RUN, "RayCluster"),
            (OTHER, "Pod"),
            (RUN, "Secret"),
        ]
        assert {(one.created_at, one.claimed, one.terminating) for one in found} == {(AT, True, False)}
        assert {query["labelSelector"] for _, _, query in server.asked} == {"starforge.io/managed=true"}


def test_what_bears_another_installation_is_not_ours_and_what_bears_none_not_claimed() -> None:
    objects = [of(US, pod("a")), of(THEM, pod("b")), of(None, pod("c")), named("stranger")]
    with serving(Namespace({"pods": objects})) as server:
        found = fleet(server).ours(US)
        assert [(one.what.object.name, one.claimed) for one in found] == [("pod-a", True), ("pod-c", False)]


def test_what_is_on_its_way_out_says_so() -> None:
    with serving(Namespace({"rayjobs": [of(US, going(rayjob(), "a/b"))]})) as server:
        (found,) = fleet(server).ours(US)
        assert (found.terminating, found.what.finalizers) == (True, ("a/b",))


@pytest.mark.parametrize("kind", ["rayjobs", "rayclusters", "pods", "secrets"])
def test_a_list_that_fails_is_no_list(kind: str) -> None:
    with serving(Namespace({"rayjobs": [rayjob()]}, {kind: status(503)})) as server:
        with pytest.raises(FleetUnavailable):
            fleet(server).ours(US)
        with pytest.raises(FleetUnavailable):
            fleet(server).remaining(RUN)


def test_without_its_definition_there_are_no_rayjobs_but_pods_still_count() -> None:
    gone = {"rayjobs": NOT_SERVED, "rayclusters": NOT_SERVED}
    with serving(Namespace({"pods": [of(US, pod("a"))]}, gone)) as server:
        it = fleet(server)
        assert [one.what.object.kind for one in it.ours(US)] == ["Pod"]
        assert [left.object.kind for left in it.remaining(RUN)] == ["Pod"]
        it.delete(RUN)
        assert [path.rpartition("/")[2] for method, path, _ in server.asked if method == "DELETE"] == ["pod-a"]
    with serving(Namespace({}, {"pods": NOT_SERVED})) as server, pytest.raises(FleetRefused):
        fleet(server).remaining(RUN)


def test_a_namespace_that_is_not_there_proves_that_nothing_is() -> None:
    with serving(Namespace()) as server:  # the API server lists nothing of a namespace that it does not have
        assert fleet(server).remaining(RUN) == []


def test_every_kind_counts_also_what_kuberay_makes_without_our_labels() -> None:
    objects = {
        "rayjobs": [rayjob()],
        "rayclusters": [rayjob()],
        "pods": [pod("a"), pod("b", run=OTHER)],
        "secrets": [secret()],
        "services": [named("x-head-svc", owner="x"), named("y", owner=order().name)],
        "jobs": [named(order().name)],
    }
    with serving(Namespace(objects)) as server:
        kinds = [left.object.kind for left in fleet(server).remaining(RUN)]
        assert kinds == ["RayJob", "RayCluster", "Pod", "Secret", "Service", "Job"]


def test_what_is_asked_to_go_already_is_not_asked_again() -> None:
    objects = {"rayjobs": [going(rayjob(), "a/b")], "secrets": [secret()], "pods": [going(pod("a"))]}
    objects["pods"][0]["metadata"]["deletionGracePeriodSeconds"] = 30
    with serving(Namespace(objects)) as server:
        fleet(server).delete(RUN)
        deleted = [path.rpartition("/ns/")[2] for method, path, _ in server.asked if method == "DELETE"]
        assert deleted == ["secrets/try-0123456789", "pods/pod-a"], "the Pod gets a shorter grace"


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (as_json({"metadata": {"name": "ns", "uid": "u", "deletionTimestamp": CREATED}}), ["RayJob", "Namespace"]),
        (as_json({"metadata": {"name": "ns", "uid": "u"}}), ["RayJob"]),
        (status(403), ["RayJob"]),
        (status(404), ["RayJob"]),
    ],
)
def test_a_namespace_on_its_way_out_is_named_with_what_is_held_in_it(answer: Answer, names: list[str]) -> None:
    with serving(Namespace({"rayjobs": [going(rayjob(), "a/b")]}, {"ns": answer})) as server:
        assert [left.object.kind for left in fleet(server).remaining(RUN)] == names


def test_the_namespace_is_not_asked_for_while_all_goes_well() -> None:
    with serving(Namespace({"rayjobs": [rayjob()], "pods": [going(pod("a"))]}, {"ns": status(500)})) as server:
        assert len(fleet(server).remaining(RUN)) == 2


def test_all_that_is_launched_bears_the_installation() -> None:
    ours = replace(order(), installation=US)
    made: Any = render_rayjob(ours, CONFIG, served=frozenset())
    cluster = made["spec"]["rayClusterSpec"]
    templates = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    metadata = [made["metadata"], *(one["template"]["metadata"] for one in templates)]
    metadata.append(render_secret(ours, CONFIG, ca_bundle=None)["metadata"])
    assert [one["labels"][LABEL_INSTALLATION] for one in metadata] == [US] * len(metadata)
    assert len(metadata) == 4
    assert LABEL_INSTALLATION not in render_rayjob(order(), CONFIG, served=frozenset())["metadata"]["labels"]
