"""The Pod of a playground as it is sent, found again and told."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.playground import render_playground
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.names import LABEL_PLAYGROUND
from starforge.domain.observation import PodRole, RunPhase
from starforge.domain.ports import PlaygroundOrder
from starforge.domain.reason import ReasonCode
from tests.unit.kube.kube_objects import pod
from tests.unit.kube.kube_orders import CONFIG, FROM_STORAGE, PLAY, PLAY_DRAFT, playground
from tests.unit.kube.kube_server import as_json, listed, serving, status
from tests.unit.kube.test_kube_board import board, told
from tests.unit.kube.test_kube_fleet_calls import EXISTS, Cluster, calls, fleet
from tests.unit.kube.test_kube_rendering import env

HERE = Path(__file__).parent
STORAGE = replace(CONFIG, storage_pvc="starforge-storage", corpus_pvc="starforge-corpus")
CASES: dict[str, tuple[PlaygroundOrder, KubeConfig]] = {
    "vllm": (playground(), CONFIG),
    "vllm-storage": (playground(FROM_STORAGE), STORAGE),
    "vllm-no-passthrough": (playground(), replace(CONFIG, gpu_passthrough=False)),
}


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    """KUBE_GOLDEN=write renders the files anew; read the difference before it is committed."""
    golden, found = HERE / "golden" / f"{name}.yaml", render_playground(*CASES[name])
    if os.environ.get("KUBE_GOLDEN") == "write":
        golden.write_text(yaml.safe_dump(found, sort_keys=False, allow_unicode=True, width=120))
    assert found == yaml.safe_load(golden.read_text())


def test_a_caller_who_splits_the_model_otherwise_is_left_alone() -> None:
    args = render_playground(playground(replace(PLAY_DRAFT, args=("-tp=1", "-pp=2"))), CONFIG)["spec"]["containers"][0][
        "args"
    ]
    assert "--tensor-parallel-size" not in args


def test_a_server_without_gpus_is_shown_none() -> None:
    assert env(render_playground(*CASES["vllm-storage"]))["NVIDIA_VISIBLE_DEVICES"] == "void"


def play_pod(name: str = "a", version: int = 1, **rest: Any) -> KubeObject:
    found: KubeObject = pod(name, **rest)
    labels = render_playground(playground(), CONFIG)["metadata"]["labels"]
    found["metadata"] |= {"labels": labels, "resourceVersion": str(version)}
    return found


def test_its_pod_is_told_at_once_though_no_rayjob_ever_comes() -> None:
    it = board()
    it.listed(Listed(Kind.RAYJOB, []))
    it.listed(Listed(Kind.POD, []))
    it.changed(Changed(Kind.POD, play_pod()))
    (seen,) = told(it)
    assert (seen.run, seen.phase in (RunPhase.RUNNING, RunPhase.WAITING)) == (PLAY, True)
    assert [each.role for each in seen.pods] == [PodRole.PLAYGROUND]
    it.changed(Changed(Kind.POD, play_pod(version=2), deleted=True))
    (seen,) = told(it)
    assert (seen.phase, seen.pods, len(seen.gone)) == (RunPhase.ABSENT, (), 1)


MADE = {"metadata": {"name": playground().name, "namespace": "ns", "uid": "play-uid"}}


def test_it_is_created_by_one_request() -> None:
    with serving(Cluster(POST_pods=[as_json(MADE, 201)])) as server:
        assert fleet(server).launch_playground(playground()).uid == "play-uid"
        assert calls(server) == ["POST pods"]


def test_one_that_is_there_is_adopted_without_the_right_to_get_a_pod() -> None:
    there = play_pod()
    there["metadata"] |= {"name": playground().name, "namespace": "ns"}
    with serving(Cluster(POST_pods=[EXISTS], GET_pods=[listed(there)])) as server:
        assert fleet(server).launch_playground(playground()).name == playground().name
        assert calls(server) == ["POST pods", "GET pods"]


def test_a_pod_of_somebody_else_is_not_touched() -> None:
    cluster = Cluster(POST_pods=[EXISTS], GET_pods=[listed()])
    with serving(cluster) as server, pytest.raises(FleetRefused, match="not StarForge's"):
        fleet(server).launch_playground(playground())


def test_a_quota_that_is_used_up_is_waited_for() -> None:
    full = status(403, "Forbidden", "pods is forbidden: exceeded quota: gpus, requested: 2, used: 8, limited: 8")
    with serving(Cluster(POST_pods=[full])) as server, pytest.raises(FleetUnavailable) as held:
        fleet(server).launch_playground(playground())
    assert held.value.reason
    assert held.value.reason.code is ReasonCode.QUOTA


def test_the_label_names_the_playground() -> None:
    assert render_playground(playground(), CONFIG)["metadata"]["labels"][LABEL_PLAYGROUND] == PLAY.job
