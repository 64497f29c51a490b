"""Objects lose what is large and never read, and every view of them stays what it was."""

import json
from copy import deepcopy

import pytest

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.events import event_seen
from starforge.adapters.kube.views.pods import assign_machines, pod_views
from starforge.adapters.kube.views.runs import rayjob_view
from starforge.adapters.kube.watch.messages import Kind
from starforge.adapters.kube.watch.slimming import slimmed
from tests.unit.kube.kube_objects import pod, recorded
from tests.unit.kube.kube_orders import AT, RUN


def views(pods: list[KubeObject]) -> object:
    return pod_views(pods, assign_machines(pods, {}), AT)


def laden(found: KubeObject) -> KubeObject:
    """A Pod with what the API server and people add to it."""
    much = [{"name": f"volume-{number}", "value": "x" * 40} for number in range(20)]
    found["metadata"]["managedFields"] = much
    found["spec"] |= {"volumes": much, "tolerations": much}
    for container in found["spec"]["containers"]:
        container |= {"env": much, "volumeMounts": much, "command": ["x" * 40]}
    return found


def test_pods_look_the_same_to_every_view() -> None:
    pods = [laden(each) for each in recorded("pods")]
    before = views(deepcopy(pods))
    slim = [slimmed(Kind.POD, deepcopy(each)) for each in pods]
    assert views(slim) == before
    assert len(json.dumps(slim)) < 0.6 * len(json.dumps(pods))
    assert "x" * 10 not in json.dumps(slim)


def test_a_rayjob_looks_the_same_and_keeps_no_signed_address() -> None:
    found = recorded("rayjob")
    found["spec"]["runtimeEnvYAML"] = "working_dir: https://store/a.zip?X-Amz-Signature=dead"
    before = rayjob_view(deepcopy(found), AT)
    slim = slimmed(Kind.RAYJOB, found)
    assert rayjob_view(slim, AT) == before
    assert "X-Amz-Signature" not in json.dumps(slim)
    assert "rayClusterSpec" not in slim["spec"]


def test_events_look_the_same() -> None:
    for each in recorded("events"):
        assert event_seen(RUN, slimmed(Kind.EVENT, deepcopy(each))) == event_seen(RUN, each)


def test_secrets_of_the_environment_are_not_kept() -> None:
    found = pod("a")
    found["spec"]["containers"][0]["env"] = [{"name": "KEY", "value": "dead"}]
    found["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "dead"
    assert "dead" not in json.dumps(slimmed(Kind.POD, found))


@pytest.mark.parametrize("kind", list(Kind))
def test_objects_with_nothing_in_them(kind: Kind) -> None:
    bare: KubeObject = {"metadata": {"uid": "x", "annotations": None}, "spec": None}
    assert slimmed(kind, deepcopy(bare)) == bare


def test_words_that_all_objects_have_are_kept_once() -> None:
    one, other = (slimmed(Kind.POD, json.loads(json.dumps(pod(uid)))) for uid in ("a", "b"))
    assert one["status"]["phase"] is other["status"]["phase"]
    assert all(a is b for a, b in zip(one["metadata"], other["metadata"], strict=True))
