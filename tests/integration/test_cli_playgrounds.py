"""`starforge playground` as a person and a script use it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from starforge.cli.main import app
from tests.integration.scripted_gateway import TOKEN, Json, Script, serve, stream
from tests.unit.cli.playground_answers import a_playground, playground_change, playground_page

FEED = {"at": "2026-03-01T09:30:00.000Z"}
REASON = {
    "code": "UNSCHEDULABLE",
    "message": "No node is free.",
    "advice": "Wait.",
    "whose": "CLUSTER",
    "since": FEED["at"],
}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with serve(Script()) as serving:
        monkeypatch.setenv("FORGE_URL", serving.url)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        yield serving


def run(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["playground", *words], input=given)


def given_of(value: Any) -> Any:
    """An input without what was left out of it."""
    if isinstance(value, dict):
        return {name: given_of(inner) for name, inner in value.items() if inner is not None}
    return [given_of(inner) for inner in value] if isinstance(value, list) else value


def creates(script: Script, *steps: Json) -> None:
    starting = a_playground(state="STARTING", endpoint=None, readyAt=None, expiresAt=None)
    script.fields |= {
        "createPlayground": {"userErrors": [], "status": "CREATED", "playground": starting},
        "playground": lambda **_: stream(
            playground_change(1, starting | {"reason": REASON}), playground_change(2, None, "BOOKMARK"), *steps
        ),
    }


CREATE = ("create", "--model", "org/tiny", "--series", "h200")


def test_create_waits_until_it_answers(script: Script) -> None:
    creates(script, playground_change(3, a_playground()))
    result = run(*CREATE, "--gpus", "2", "--ttl", "4h", "--idle", "90s", "--arg=--dtype=half", "--env", "A=b=c")
    assert result.exit_code == 0, result.stderr
    assert "It answers as org/tiny at https://forge.example.com/playgrounds/play-1/v1" in result.stdout
    assert result.stderr.splitlines() == [
        "The playground chat starts as play-1.", "STARTING: No node is free.", "READY",
    ]  # fmt: skip
    [given] = script.arguments("createPlayground")
    asked = given_of(given["input"])
    assert asked.pop("idempotencyKey")
    assert asked == {
        "model": "org/tiny", "series": "h200", "gpus": 2, "name": "tiny", "ttlSeconds": 14400, "idleSeconds": 90,
        "args": ["--dtype=half"], "env": [{"name": "A", "value": "b=c"}],
    }  # fmt: skip


def test_one_that_fails(script: Script) -> None:
    creates(script, playground_change(3, a_playground(state="FAILED", ended=True, endpoint=None, reason=REASON)))
    result = run(*CREATE)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "It is FAILED. No node is free. Wait."


def test_create_as_json_without_waiting(script: Script) -> None:
    creates(script)
    result = run(*CREATE, "--no-wait", "--json")
    assert (result.exit_code, json.loads(result.stdout)["state"], result.stderr) == (0, "STARTING", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--ttl", "soon"), "--ttl soon: give a number and s, m, h or d, for example 30h."),
        (("--env", "A"), "--env A: give a name and a value, as NAME=VALUE."),
    ],
)
def test_what_can_not_be_meant(script: Script, words: tuple[str, ...], sentence: str) -> None:
    result = run(*CREATE, *words)
    assert (result.exit_code, result.stderr.strip(), script.seen) == (2, sentence, [])


def test_what_the_gateway_refuses(script: Script) -> None:
    error = {"__typename": "InputError", "code": "REQUIRED", "field": ["input", "image"], "message": "Name an image."}
    script.fields["createPlayground"] = {"userErrors": [error], "status": "REFUSED", "playground": None}
    result = run(*CREATE)
    assert (result.exit_code, result.stderr) == (2, "Name an image.\n")


def test_list(script: Script) -> None:
    script.fields |= {"feed": FEED, "playgrounds": playground_page(a_playground(), a_playground(id="play-0"))}
    result = run("list")
    assert result.exit_code == 0
    head, row, _ = result.stdout.splitlines()
    assert head.split() == ["ID", "NAME", "MODEL", "STATE", "GPUS", "AGE", "ENDS", "IN", "REQUESTS"]
    assert row.split("  ")[0] == "play-1"
    assert row.split()[1:] == ["chat", "org/tiny", "READY", "2", "h200", "30", "min", "30", "min", "7"]
    assert given_of(script.arguments("playgrounds")[0]["filter"]) == {"active": True}
    assert [one["id"] for one in json.loads(run("list", "--all", "--json").stdout)] == ["play-1", "play-0"]
    assert given_of(script.arguments("playgrounds")[1]["filter"]) == {}


def test_nothing_to_list(script: Script) -> None:
    script.fields |= {"feed": FEED, "playgrounds": playground_page()}
    result = run("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No playgrounds. Start one with `starforge playground create`.\n"


def test_extend_and_stop(script: Script) -> None:
    script.fields |= {
        "extendPlayground": {"userErrors": [], "playground": a_playground()},
        "stopPlayground": {"userErrors": [], "playground": a_playground(state="STOPPED", ended=True)},
    }
    assert run("extend", "play-1", "2h").stdout.startswith("play-1 lives until ")
    assert script.arguments("extendPlayground") == [{"id": "play-1", "seconds": 7200}]
    assert run("stop", "play-1").stdout == "play-1 is STOPPED.\n"


@pytest.mark.parametrize("words", [("extend", "play-1", "2h"), ("stop", "play-1")])
def test_one_that_is_not_there(script: Script, words: tuple[str, ...]) -> None:
    error = {"__typename": "InputError", "code": "NOT_FOUND", "field": ["id"], "message": "There is none."}
    answer = {"userErrors": [error], "playground": None}
    script.fields |= {"extendPlayground": answer, "stopPlayground": answer}
    result = run(*words)
    assert result.exit_code == 5
    assert "`starforge playground list` lists those there are" in result.stderr
