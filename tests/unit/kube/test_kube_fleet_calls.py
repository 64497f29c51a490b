"""What the fleet asks of the API server, and what it makes of the answers."""

from dataclasses import replace
from pathlib import Path

import pytest
from kubernetes.client import Configuration

from starforge.adapters.kube.client import TokenFile
from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.observation import RunPhase
from starforge.domain.ports import FleetKind, StopAnswer
from starforge.domain.reason import ReasonCode
from starforge.domain.spec import Deadlines
from tests.unit.kube.kube_objects import pod, raycluster, rayjob
from tests.unit.kube.kube_orders import AT, RUN, SPEC, order, signed
from tests.unit.kube.kube_server import Answer, Query, Server, as_json, listed, serving, status

EXISTS = status(409, "AlreadyExists")
MISSING = status(404, "NotFound")
CRD = as_json({"spec": {"versions": []}})


def fleet(server: Server) -> KubeFleet:
    config = KubeConfig(namespace="ns", api_server=server.url, token="secret", image="image")
    return KubeFleet(config, now=lambda: AT)


class Cluster:
    """Answers by `<method> <last part of the path>`, given in turn, the last one for ever."""

    def __init__(self, **answers: list[Answer]) -> None:
        self.answers = {name.replace("_", " ", 1): turns for name, turns in answers.items()}

    def __call__(self, method: str, path: str, _query: Query) -> Answer:
        what = next((each for each in ("rayjobs", "rayclusters", "secrets", "stop", "pods") if f"/{each}" in path), "")
        what = "crd" if "customresourcedefinitions" in path else what
        turns = self.answers.get(f"{method} {what}", [CRD if what == "crd" else listed()])
        return turns.pop(0) if len(turns) > 1 else turns[0]


def calls(server: Server) -> list[str]:
    return [f"{method} {path.split('/ns/')[-1].split('/')[0]}" for method, path, _ in server.asked if "/ns/" in path]


def test_the_secret_is_there_before_the_rayjob_and_then_belongs_to_it() -> None:
    with serving(Cluster(GET_rayjobs=[MISSING], POST_rayjobs=[as_json(rayjob(), 201)])) as server:
        made = fleet(server).launch(order())
        assert (made.name, made.namespace, made.uid) == ("try-0123456789", "ns", "job-uid")
        assert calls(server) == ["GET rayjobs", "POST secrets", "POST rayjobs", "PATCH secrets"]
        assert server.bodies[-1]["metadata"]["ownerReferences"][0]["uid"] == "job-uid"


def test_a_run_that_is_there_is_adopted_and_its_secret_left_alone() -> None:
    with serving(Cluster(GET_rayjobs=[as_json(rayjob())])) as server:
        assert fleet(server).launch(order()).uid == "job-uid"
        assert calls(server) == ["GET rayjobs", "PATCH secrets"]


def test_a_secret_of_a_try_that_failed_is_replaced() -> None:
    secrets = [EXISTS, as_json({}, 201)]
    cluster = Cluster(GET_rayjobs=[MISSING], POST_secrets=secrets, POST_rayjobs=[as_json(rayjob(), 201)])
    with serving(cluster) as server:
        fleet(server).launch(order())
        assert calls(server)[1:4] == ["POST secrets", "DELETE secrets", "POST secrets"]


def test_who_was_first_wins() -> None:
    with serving(Cluster(GET_rayjobs=[MISSING, as_json(rayjob())], POST_rayjobs=[EXISTS])) as server:
        assert fleet(server).launch(order()).uid == "job-uid"


def test_a_rayjob_of_somebody_else_is_not_touched() -> None:
    stranger = rayjob()
    stranger["metadata"]["labels"] = {}
    with serving(Cluster(GET_rayjobs=[as_json(stranger)])) as server:
        with pytest.raises(FleetRefused, match="not StarForge's") as refused:
            fleet(server).launch(order())
        assert refused.value.reason.code is ReasonCode.LAUNCH_FAILED
        assert calls(server) == ["GET rayjobs"]


def test_a_secret_that_was_lost_is_made_again() -> None:
    with serving(Cluster(GET_rayjobs=[as_json(rayjob())], PATCH_secrets=[MISSING, as_json({})])) as server:
        fleet(server).launch(order())
        assert calls(server) == ["GET rayjobs", "PATCH secrets", "POST secrets", "PATCH secrets"]


def test_without_an_operator_there_is_nothing_to_wait_for() -> None:
    with serving(Cluster(GET_rayjobs=[MISSING], GET_crd=[MISSING])) as server:
        with pytest.raises(FleetRefused) as refused:
            fleet(server).launch(order())
        assert refused.value.reason.code is ReasonCode.OPERATOR_ABSENT


def test_an_outage_is_no_refusal() -> None:
    with serving(Cluster(GET_rayjobs=[status(503)])) as server, pytest.raises(FleetUnavailable, match="start"):
        fleet(server).launch(order())
    with pytest.raises(FleetUnavailable, match="can't be reached"):
        fleet(server).look(RUN)


def test_a_directory_store_can_not_feed_pods() -> None:
    with serving(Cluster()) as server, pytest.raises(FleetRefused, match="directory"):
        fleet(server).launch(replace(order(), capsule=signed("file:///var/objects/a.zip")))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (as_json({"stopped": True}), StopAnswer.ASKED),
        (as_json({"stopped": False}), StopAnswer.NOBODY_TO_ASK),
        (MISSING, StopAnswer.NOBODY_TO_ASK),
        (status(503, message="error trying to reach service: dial tcp: refused"), StopAnswer.NOBODY_TO_ASK),
        (status(503, message='no endpoints available for service "x"'), StopAnswer.NOBODY_TO_ASK),
    ],
)
def test_a_command_is_asked_to_stop(answer: Answer, expected: StopAnswer) -> None:
    running = rayjob(job="RUNNING", deployment="Running")
    running["status"]["jobId"] = "try-xyz"
    with serving(Cluster(GET_rayjobs=[listed(running)], POST_stop=[answer])) as server:
        assert fleet(server).stop(RUN, grace_s=5) is expected
        path = "/api/v1/namespaces/ns/services/try-0123456789-abcde-head-svc:dashboard/proxy/api/jobs/try-xyz/stop"
        assert [asked for method, asked, _ in server.asked if method == "POST"] == [path]


def test_when_the_api_server_is_the_trouble_nothing_is_said_about_the_command() -> None:
    running = rayjob()
    running["status"]["jobId"] = "try-xyz"
    cluster = Cluster(GET_rayjobs=[listed(running)], POST_stop=[status(503, message="apiserver is shutting down")])
    with serving(cluster) as server, pytest.raises(FleetUnavailable):
        fleet(server).stop(RUN, grace_s=5)


def test_there_is_nobody_to_ask_before_there_is_a_job() -> None:
    with serving(Cluster(GET_rayjobs=[listed(rayjob())])) as server:
        assert fleet(server).stop(RUN, grace_s=5) is StopAnswer.NOBODY_TO_ASK


def test_removal_takes_the_rayjob_first_and_leaves_pods_that_go_anyway() -> None:
    going = pod("b")
    going["metadata"] |= {"deletionTimestamp": "2026-11-29T12:00:02Z", "deletionGracePeriodSeconds": 2}
    cluster = Cluster(GET_rayjobs=[listed(rayjob())], GET_pods=[listed(pod("a"), going)])
    with serving(cluster) as server:
        fleet(server).delete(RUN)
        deleted = [path.rpartition("/ns/")[2] for method, path, _ in server.asked if method == "DELETE"]
        assert deleted == ["rayjobs/try-0123456789", "pods/pod-a"]
        assert server.bodies[-1] == {"propagationPolicy": "Background", "gracePeriodSeconds": 2}


def test_what_is_left_is_told_with_what_holds_it() -> None:
    held = rayjob()
    held["metadata"] |= {"finalizers": ["ray.io/rayjob-finalizer"], "deletionTimestamp": "2026-11-29T12:00:00Z"}
    with serving(Cluster(GET_rayjobs=[listed(held)])) as server:
        (left,) = fleet(server).remaining(RUN)
        assert (left.object.kind, left.object.name, left.finalizers) == (
            "RayJob",
            "try-0123456789",
            ("ray.io/rayjob-finalizer",),
        )
        assert left.deletion_requested_at == AT


def test_a_look_tells_absence_only_when_asked_and_answered() -> None:
    with serving(Cluster()) as server:
        assert fleet(server).look(RUN).phase is RunPhase.ABSENT


def test_a_look_sees_what_the_watch_sees() -> None:
    found = {"GET_rayjobs": [listed(rayjob())], "GET_rayclusters": [listed(raycluster(failure="quota"))]}
    with serving(Cluster(**found, GET_pods=[listed(pod("a"))])) as server:
        seen = fleet(server).look(RUN)
    assert seen.rayjob is not None
    assert seen.raycluster is not None
    assert seen.raycluster.failure is not None
    assert (seen.raycluster.failure.message, [each.name for each in seen.pods]) == ("quota", ["pod-a"])


def test_signatures_last_as_long_as_they_are_needed() -> None:
    with serving(Cluster()) as server:
        it = fleet(server)
        assert it.signature_seconds(SPEC) == 1800 + 7200 + 900
        assert it.signature_seconds(replace(SPEC, deadlines=Deadlines(60, 1800, 0))) == 60 + 1800 + 900
        assert it.signature_seconds(replace(SPEC, deadlines=Deadlines(0, 1800, 30 * 24 * 3600))) == 1800 + 900
        assert it.signature_seconds(replace(SPEC, deadlines=Deadlines(0, 0, 7200))) is None
        assert (it.kind, it.name, it.defaults().fleet) == (FleetKind.KUBERAY, "kuberay", "kuberay")


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path, configuration = tmp_path / "token", Configuration()
    path.write_text("one\n")
    read = TokenFile(path)
    read(configuration)
    assert configuration.api_key["BearerToken"] == "one"
    fresh = tmp_path / "fresh"
    fresh.write_text("two\n")
    fresh.replace(path)
    read(configuration)
    assert configuration.api_key["BearerToken"] == "two"
