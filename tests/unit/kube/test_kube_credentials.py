"""Tokens that are replaced while we run, wherever they come from."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.config import incluster_config

from starforge.adapters.kube.client import RENEW_S, KubeApi
from starforge.adapters.kube.settings import KubeConfig
from tests.unit.kube.kube_server import Answer, Query, Server, as_json, serving, status

PLUGIN = """
import json, pathlib, sys
token = pathlib.Path(sys.argv[1]).read_text()
status = {"token": token, **({"expirationTimestamp": sys.argv[2]} if sys.argv[2:] else {})}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""
Make = Callable[[str, Path], KubeConfig]


def given(url: str, token: Path) -> KubeConfig:
    return KubeConfig(namespace="ns", api_server=url, token_file=str(token))


def kubeconfig(url: str, token: Path, user: object) -> KubeConfig:
    """A kubeconfig beside the token, as JSON, which is YAML too."""
    path = token.parent / "kubeconfig"
    context = {"cluster": "it", "user": "us"}
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "contexts": [{"name": "here", "context": context}], "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "us", "user": user}],
    }  # fmt: skip
    path.write_text(json.dumps(content))
    return KubeConfig(namespace="ns", kubeconfig=str(path))


def named_file(url: str, token: Path) -> KubeConfig:
    return kubeconfig(url, token, {"tokenFile": str(token)})


def plugin(url: str, token: Path, *more: str) -> KubeConfig:
    version = "client.authentication.k8s.io/v1"
    run = {"apiVersion": version, "command": sys.executable, "args": ["-c", PLUGIN, str(token), *more]}
    return kubeconfig(url, token, {"exec": run | {"interactiveMode": "Never"}})


def expired_plugin(url: str, token: Path) -> KubeConfig:
    return plugin(url, token, "2026-01-01T00:00:00Z")


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("old")
    return path


def replace(token: Path, text: str) -> None:
    """As the kubelet does it: a new file takes the old one's place."""
    fresh = token.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(token)


class Doorman:
    """Lets in whoever shows this token."""

    def __init__(self, good: str) -> None:
        self.good = good
        self.server: Server | None = None

    def __call__(self, _method: str, _path: str, _query: Query) -> Answer:
        assert self.server is not None
        return as_json({"here": True}) if self.server.shown[-1] == self.good else status(401, "Unauthorized")


@pytest.mark.parametrize("make", [given, named_file, plugin, expired_plugin])
def test_a_token_that_was_replaced_is_read_again(make: Make, token: Path) -> None:
    doorman = Doorman("old")
    with serving(doorman) as server:
        doorman.server = server
        api = KubeApi(make(server.url, token))
        assert api.get("/version") == {"here": True}
        replace(token, "new")
        doorman.good = "new"
        assert api.get("/version") == {"here": True}
        assert server.shown[-1] == "new"


def test_a_token_that_stays_wrong_is_refused_and_seldom_read_again(token: Path) -> None:
    hours = [0.0]
    doorman = Doorman("another")
    with serving(doorman) as server:
        doorman.server = server
        api = KubeApi(named_file(server.url, token), clock=lambda: hours[0])
        for _ in range(3):
            with pytest.raises(ApiException) as refused:
                api.get("/version")
            assert refused.value.status == 401
        assert len(server.shown) == 4
        hours[0] += RENEW_S
        replace(token, "another")
        assert api.get("/version") == {"here": True}


def test_an_open_answer_outlives_the_token_that_it_was_asked_with(token: Path) -> None:
    doorman = Doorman("old")
    with serving(doorman) as server:
        doorman.server = server
        api = KubeApi(named_file(server.url, token))
        with api.stream("/watch", {}, quiet_s=5) as open_answer:
            replace(token, "new")
            doorman.good = "new"
            assert api.get("/version") == {"here": True}
            assert json.loads(open_answer.read()) == {"here": True}


def test_the_service_account_of_a_pod(monkeypatch: pytest.MonkeyPatch, token: Path, tmp_path: Path) -> None:
    import certifi

    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", certifi.where())
    api = KubeApi(KubeConfig(namespace="ns"))
    before = api._client
    assert before.configuration.get_api_key_with_prefix("BearerToken") == "bearer old"
    replace(token, "new")
    renewed = api._renewed(before)
    assert renewed is not None
    assert renewed.configuration.get_api_key_with_prefix("BearerToken") == "bearer new"
    assert api._renewed(before) is renewed
