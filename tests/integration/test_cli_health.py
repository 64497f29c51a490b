"""`starforge health` as people and scripts use it."""

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner, Result

from starforge.cli.main import app
from tests.integration.scripted_gateway import TOKEN, Json, Script, serve
from tests.servers import free_port

AT = "2026-03-01T09:31:00.000Z"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with serve(Script()) as serving:
        monkeypatch.setenv("FORGE_URL", serving.url)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        serving.fields |= {"feed": {"at": AT}, "health": some_health()}
        yield serving


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["health", *words])


def a_check(kind: str, status: str = "OK", message: str | None = None) -> Json:
    return {"kind": kind, "status": status, "message": message, "since": AT, "checkedAt": AT, "seconds": 0.01}


def some_health(status: str = "OK", message: str | None = None, **changes: object) -> Json:
    fleet = {
        "fleet": "kuberay", "kind": "KUBERAY", "status": status, "message": message, "observerLagSeconds": 0.25,
        "kubernetesVersion": "v1.34.4", "operatorVersion": "v1.5.0", "rayJobApiVersion": "ray.io/v1",
        "checks": [a_check("RBAC", status, message)],
        "access": [{"verb": "delete", "resource": "pods", "allowed": status == "OK"}],
    }  # fmt: skip
    commands: Json = {"due": 0, "oldestDueAt": None, "parked": 0, "parkedCommands": []}
    return {
        "status": status, "message": message, "checkedAt": AT, "version": "0.1.0", "checks": [a_check("DATABASE")],
        "fleets": [fleet], "commands": commands, **changes,
    }  # fmt: skip


def test_all_is_well(script: Script) -> None:
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["OK", "All", "is", "well."]
    assert [line.split()[:3] for line in lines if "09:31:00" in line or "2026-03-01" in line] == [
        ["starforge", "DATABASE", "OK"],
        ["kuberay", "RBAC", "OK"],
    ]
    assert "kuberay: Kubernetes v1.34.4, KubeRay v1.5.0, RayJob ray.io/v1, observed 0.2 s late" in result.stdout
    assert lines[-1] == "0 commands are due; 0 are parked."


def test_what_is_wrong_is_shown_and_is_the_exit_code(script: Script) -> None:
    parked = {
        "id": "command-1", "kind": "TEARDOWN", "tries": 8, "lastTriedAt": AT, "error": "[red]it broke",
        "workload": {"__typename": "Job", "id": "job-1", "name": "digits"},
    }  # fmt: skip
    commands = {"due": 2, "oldestDueAt": AT, "parked": 1, "parkedCommands": [parked]}
    script.fields["health"] = some_health("DEGRADED", "Our account may not delete pods.", commands=commands)
    result = run()
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "DEGRADED  Our account may not delete pods."
    assert "may not delete pods" in result.stdout
    assert "2 commands are due, the oldest since" in result.stdout
    assert "command-1  TEARDOWN  of job-1 (digits)  8 tries: [red]it broke" in result.stdout


def test_json_is_all_of_it(script: Script) -> None:
    script.fields["health"] = some_health("DOWN", "The database is away.")
    result = run("--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert (told["status"], told["fleets"][0]["checks"][0]["kind"]) == ("DOWN", "RBAC")


def test_those_who_may_not_see_everything_see_the_rest(script: Script) -> None:
    health = some_health()
    health["commands"]["parkedCommands"] = health["fleets"][0]["access"] = None
    script.fields["health"] = health
    assert run().exit_code == 0


def test_no_gateway_is_another_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_URL", f"http://127.0.0.1:{free_port()}")
    result = run("--json")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "can't be reached" in result.stderr
