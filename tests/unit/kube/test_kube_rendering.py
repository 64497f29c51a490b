"""RayJobs as they are sent: golden files, the schema of KubeRay's own definition, and the rules that carry the rest."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.environment import literal
from starforge.adapters.kube.rendering.rayjob import render_rayjob
from starforge.adapters.kube.rendering.secret import owned_by, render_secret
from starforge.domain.deadlines import OUTAGE_GRACE
from starforge.domain.ports import LaunchOrder
from starforge.domain.spec import Deadlines, PoolSpec
from tests.unit.kube.kube_orders import CASES, CONFIG, HTTP, HTTPS, ONE_POOL, SHA256, SPEC, order

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE / "rayjob.schema.json").read_text())
SERVED = frozenset(SCHEMA["properties"]["spec"]["properties"])


def rayjob(name: str) -> KubeObject:
    wanted, config = CASES[name]
    return render_rayjob(wanted, config, served=SERVED)


def pods(job: KubeObject) -> list[KubeObject]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"]["template"], *(group["template"] for group in cluster["workerGroupSpecs"])]


def env(pod: KubeObject) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in pod["spec"]["containers"][0]["env"]}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    """KUBE_GOLDEN=write renders the files anew; read the difference before it is committed."""
    golden, found = HERE / "golden" / f"{name}.yaml", rayjob(name)
    if os.environ.get("KUBE_GOLDEN") == "write":
        golden.write_text(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120))
    assert found == yaml.safe_load(golden.read_text())


@pytest.mark.parametrize("name", CASES)
def test_kuberay_knows_every_field(name: str) -> None:
    jsonschema.validate(rayjob(name), SCHEMA)


def test_the_schema_refuses_what_kuberay_does_not_know() -> None:
    job = rayjob("two-pools-https")
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["restartPolicies"] = "Never"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(job, SCHEMA)


def test_the_primary_pool_is_the_head_and_a_group_without_machine_zero() -> None:
    groups = rayjob("primary-of-two")["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [(each["groupName"], each["replicas"], each["minReplicas"], each["maxReplicas"]) for each in groups] == [
        ("train", 1, 1, 1)
    ]


def test_logical_resources_equal_requests_and_stay_without_passthrough() -> None:
    for name, requested in (("two-pools-https", "2"), ("no-passthrough", None)):
        head = rayjob(name)["spec"]["rayClusterSpec"]["headGroupSpec"]
        asked = head["template"]["spec"]["containers"][0]["resources"]
        assert {**asked["limits"], "cpu": "4"} == asked["requests"]
        assert asked["limits"].get("nvidia.com/gpu") == requested
        assert head["rayStartParams"]["num-gpus"] == "2"
        assert head["rayStartParams"]["resources"] == "'{\"train\": 1}'"


def test_a_machine_without_gpus_sees_none() -> None:
    cpu_only = replace(ONE_POOL, pools=(PoolSpec("cpu-only", "h200", 1, 0, 1, "2Gi", "1Gi"),))
    (head,) = pods(render_rayjob(order(cpu_only), CONFIG, served=SERVED))
    assert env(head)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in env(pods(rayjob("two-pools-https"))[0])


@pytest.mark.parametrize("text", ["$(HOME)", "$$(HOME)", "$HOME", "a $", "$$", "$(", 'it\'s "x"\n{}'])
def test_kubernetes_hands_values_over_as_they_are(text: str) -> None:
    assert expanded_by_kubernetes(literal(text)) == text


def expanded_by_kubernetes(text: str) -> str:
    """What the kubelet makes of a value: k8s.io/kubernetes/third_party/forked/golang/expansion."""
    return re.sub(r"\$(\$|\(([^)]*)\)|)", lambda found: "$" if found[1] in ("$", "") else "<expanded>", text)


def test_the_platforms_own_variables_win() -> None:
    found = env(pods(rayjob("environment"))[0])
    assert found["STARFORGE_ATTEMPT_FILE"] == "/starforge-attempt/attempt.json"
    assert found["PYTHONPATH"] == "/mine:/opt/nemo-rl"
    assert found["TOKEN"] == {"secretKeyRef": {"name": "hub", "key": "token"}}
    assert found["RAY_DEDUP_LOGS"] == "0"


def test_nemo_rl_is_on_the_path_of_the_default_image_only() -> None:
    head, rollout = pods(rayjob("two-pools-https"))
    assert env(head)["PYTHONPATH"] == "/opt/nemo-rl"
    assert "PYTHONPATH" not in env(rollout)


@pytest.mark.parametrize(
    ("wanted", "direct"),
    [
        (order(), True),
        (HTTP, False),
        (order(replace(SPEC, deadlines=Deadlines(0, 1800, 0))), False),
        (order(replace(SPEC, deadlines=Deadlines(0, 0, 7200))), False),
        (order(replace(SPEC, deadlines=Deadlines(0, 1800, 8 * 24 * 3600))), False),
    ],
)
def test_ray_fetches_what_outlives_the_run(wanted: LaunchOrder, *, direct: bool) -> None:
    job = render_rayjob(wanted, CONFIG, served=SERVED)
    working_dir = yaml.safe_load(job["spec"]["runtimeEnvYAML"])["working_dir"]
    assert working_dir == (HTTPS if direct else f"file:///starforge-capsule/{SHA256}.zip")
    for pod in pods(job):
        inits = pod["spec"].get("initContainers", [])
        assert [each["image"] for each in inits] == ([] if direct else [pod["spec"]["containers"][0]["image"]])


def test_no_signed_url_is_in_a_rayjob_whose_pods_read_it_from_the_secret() -> None:
    assert "X-Amz" not in json.dumps(rayjob("http-init-container"))


def test_optional_fields_are_sent_where_they_are_served_only() -> None:
    served = render_rayjob(order(), CONFIG, served=frozenset({"preRunningDeadlineSeconds"}))["spec"]
    assert served["preRunningDeadlineSeconds"] > SPEC.deadlines.pre_running_seconds + OUTAGE_GRACE.total_seconds()
    assert "preRunningDeadlineSeconds" not in rayjob("two-pools-https")["spec"]


def test_kuberays_active_deadline_is_wider_than_ours_and_only_with_one() -> None:
    spec = rayjob("two-pools-https")["spec"]
    limits, graces = SPEC.deadlines, 2 * OUTAGE_GRACE.total_seconds() + SPEC.cancel_grace_seconds
    assert spec["activeDeadlineSeconds"] > limits.active_seconds + limits.pre_running_seconds + graces
    assert "activeDeadlineSeconds" not in rayjob("no-active-deadline")["spec"]


def test_the_attempt_file_reaches_the_head_alone() -> None:
    head, worker = pods(rayjob("two-pools-https"))
    assert "STARFORGE_ATTEMPT_FILE" in env(head)
    assert "STARFORGE_ATTEMPT_FILE" not in env(worker)
    assert "starforge-attempt" not in json.dumps(worker)


def test_the_secret_holds_what_the_runner_reads() -> None:
    wanted = order()
    content = render_secret(wanted, CONFIG, ca_bundle="PEM")["stringData"]
    assert set(content) == {"attempt.json", "ca.crt"}
    assert json.loads(content["attempt.json"]) == {
        "nonce": "f00d",
        "capsule": "c" * 64,
        "claim": {"url": wanted.claim.url, "headers": {"If-None-Match": "*"}, "ca_file": "/starforge-ca/ca.crt"},
        "claim_until": 1795953600.0,
        "stream": "/proc/1/fd/1",
        "cancel_grace_s": 3600,
    }
    assert render_secret(HTTP, CONFIG, ca_bundle=None)["stringData"]["capsule-url"] == HTTP.capsule.url


def test_the_secret_goes_with_its_rayjob() -> None:
    made = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "x", "uid": "u"}}
    assert owned_by(made)["metadata"]["ownerReferences"] == [
        {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "x", "uid": "u"}
    ]


def test_an_image_is_needed() -> None:
    with pytest.raises(ValueError, match="no image"):
        render_rayjob(order(replace(ONE_POOL, image=None)), CONFIG, served=SERVED)
