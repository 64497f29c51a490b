"""`starforge capacity` and `starforge fits` as people and scripts use them."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from starforge.cli.main import app
from tests.integration.scripted_gateway import TOKEN, Ended, Json, Script, serve
from tests.unit.cli.api_answers import AT, a_demand, a_fleet, a_node

SPEC = """
name: digits
command: [python3, train.py]
pools:
  - {name: train, series: h200, machines: 1, gpusPerMachine: 4}
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with serve(Script()) as serving:
        monkeypatch.setenv("FORGE_URL", serving.url)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        nodes = a_node("node-a", used=3), a_node("node-b", blocked=4)
        serving.fields["capacity"] = [a_fleet(*nodes, waiting=[a_demand()])]
        yield serving


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_a_page(script: Script) -> None:
    result = run("capacity")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["h200", "8", "3", "1", "4", "1"] in [line[:6] for line in lines]
    assert script.arguments("capacity") == [{"fleet": None}]


def test_json_is_all_of_it(script: Script) -> None:
    [fleet] = json.loads(run("capacity", "--json", "--fleet", "kuberay").stdout)
    assert (fleet["name"], fleet["series"][0]["nodes"][1]["causes"][0]["cause"]) == ("kuberay", "CORDONED")
    assert script.arguments("capacity") == [{"fleet": "kuberay"}]


def test_a_fleet_that_is_not_there_is_not_found(script: Script) -> None:
    script.fields["capacity"] = []
    result = run("capacity", "--fleet", "elsewhere")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "There is no fleet elsewhere" in result.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_watching_tells_every_change(script: Script, as_json: bool) -> None:
    asked = script.fields["capacity"]

    async def steps() -> AsyncIterator[Json]:
        for kind, nodes in (("SNAPSHOT", [a_node("node-a")]), ("UPDATED", [a_node("node-a", blocked=4)])):
            step = {"cursor": kind, "kind": kind, "at": AT, "fleet": a_fleet(*nodes), "changedNodes": nodes}
            yield {"capacity": step | {"removedNodeIds": []}}
        yield {"capacity": {"cursor": "b", "kind": "BOOKMARK", "at": AT, "fleet": None, "changedNodes": [],
                            "removedNodeIds": []}}  # fmt: skip
        raise Ended("FORBIDDEN")  # which is what ends a watch by itself

    def both(**arguments: Any) -> Any:
        return steps() if "after" in arguments or len(script.arguments("capacity")) > 1 else asked

    script.fields["capacity"] = both
    result = run("capacity", "--watch", *(["--json"] if as_json else []))
    assert result.exit_code == 4
    lines = result.stdout.splitlines()
    if as_json:
        assert [json.loads(line)["kind"] for line in lines] == ["SNAPSHOT", "UPDATED"]
    else:
        assert any("0 of 4 used, 4 free, 0 blocked" in line for line in lines)
        assert "0 of 4 used, 0 free, 4 blocked; 4 CORDONED" in lines[-1]


def a_report(verdict: str, **changes: Any) -> Json:
    return {
        "verdict": verdict,
        "message": f"It is {verdict}.",
        "fleet": None,
        "fleets": [],
        "userErrors": [],
        **changes,
    }


@pytest.mark.parametrize(("verdict", "code"), [("NOW", 0), ("LATER", 1), ("UNKNOWN", 1), ("NEVER", 2)])
def test_the_verdict_is_the_exit_code(script: Script, tmp_path: Path, verdict: str, code: int) -> None:
    script.fields["fits"] = a_report(verdict)
    file = tmp_path / "starforge.yaml"
    file.write_text(SPEC)
    for path in (file, tmp_path):
        result = run("fits", str(path))
        assert (result.exit_code, result.stdout.strip()) == (code, f"{verdict}  It is {verdict}.")
    assert json.loads(run("fits", str(file), "--json").stdout)["verdict"] == verdict
    assert script.arguments("fits")[0]["spec"]["pools"][0]["gpusPerMachine"] == 4


def test_what_is_wrong_with_the_spec_is_told_with_its_line(script: Script, tmp_path: Path) -> None:
    error = {"__typename": "InputError", "code": "UNKNOWN_SERIES", "field": ["spec", "pools", "0", "series"],
             "message": "There is no such series."}  # fmt: skip
    script.fields["fits"] = a_report("NEVER", userErrors=[error])
    file = tmp_path / "job.yaml"
    file.write_text(SPEC)
    result = run("fits", str(file))
    assert result.exit_code == 2
    assert [line.split()[:2] for line in result.stderr.splitlines()][-1] == ["5", "pools[0].series"]
    assert run("fits", str(file), "--json").exit_code == 2


def test_a_file_that_is_no_spec_is_refused_before_anybody_is_asked(script: Script, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: [")
    assert run("fits", str(file)).exit_code == 2
    assert script.arguments("fits") == []
