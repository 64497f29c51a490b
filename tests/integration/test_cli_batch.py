"""`submit --batch`, `cancel` by filter and `retry` as a script uses them: what is asked, what is told, exit codes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse
from typer.testing import CliRunner, Result

from starforge.cli.main import app
from tests.integration.scripted_gateway import TOKEN, Ended, Json, Script, json_lines, serve, stream
from tests.unit.cli.api_answers import a_job, change

SPEC = """\
name: digits-{seed}
command: [python3, train.py]
pools: [{name: train, series: h200, machines: 1, gpusPerMachine: 1}]
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with serve(Script()) as serving:
        monkeypatch.setenv("FORGE_URL", serving.url)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        yield serving


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """A batch of five jobs beside its code."""
    (tmp_path / "starforge.yaml").write_text(SPEC)
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "jobs.yaml").write_text("batch: b\nmatrix: {seed: [1, 2, 3, 4, 5]}\n")
    return tmp_path / "jobs.yaml"


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def takes(script: Script, *, known: int = 0) -> None:
    """Lets the gateway take jobs; the first `known` that are looked for are there already."""

    def jobs(filter: Json, **_: object) -> Json:  # noqa: A002
        nodes = [a_job() | {"id": f"old-{key}", "idempotencyKey": key} for key in filter["idempotencyKeys"][:known]]
        return {"nodes": nodes}

    def submit_jobs(input: Json) -> Json:  # noqa: A002
        made = [
            {"index": index, "status": "CREATED", "job": {"id": f"job-{one['spec']['name']}"}, "userErrors": []}
            for index, one in enumerate(input["items"])
        ]
        return {"userErrors": [], "outcomes": made}

    present: dict[str, Any] = {"userErrors": [], "status": "PRESENT", "digest": "0" * 64, "upload": None}
    viewer = {"project": "default"}
    script.fields |= {"prepareCode": present, "jobs": jobs, "submitJobs": submit_jobs, "viewer": viewer}


def sent(script: Script) -> list[list[str]]:
    """Names of the jobs of each call."""
    return [[item["spec"]["name"] for item in call["input"]["items"]] for call in script.arguments("submitJobs")]


def test_jobs_go_in_chunks_and_the_summary_tells_of_each(script: Script, batch: Path) -> None:
    takes(script)
    result = run("submit", "--batch", batch, "--chunk", 2, "--allow-unsatisfiable", "--json")
    assert result.exit_code == 0
    summary = json.loads(result.stdout)
    names = [f"digits-{number}" for number in range(1, 6)]
    assert sent(script) == [names[:2], names[2:4], names[4:]]
    assert [one["job"] for one in summary["outcomes"]] == [f"job-{name}" for name in names]
    assert (summary["batch"], summary["total"], summary["created"], summary["refused"]) == ("b", 5, 5, 0)
    items = [item for call in script.arguments("submitJobs") for item in call["input"]["items"]]
    assert {item["code"]["digest"] for item in items} == {summary["codeDigest"]}
    assert [item["idempotencyKey"] for item in items] == [one["idempotencyKey"] for one in summary["outcomes"]]
    assert all(item["allowUnsatisfiable"] for item in items)
    assert all({"key": "batch", "value": "b"} in item["spec"]["labels"] for item in items)


def test_the_batch_file_is_no_part_of_the_code(script: Script, batch: Path) -> None:
    takes(script)
    before = json.loads(run("submit", "--batch", batch, "--json").stdout)["outcomes"]
    batch.write_text("batch: b\nmatrix: {seed: [0, 1, 2, 3, 4, 5]}\n")
    after = json.loads(run("submit", "--batch", batch, "--json").stdout)["outcomes"]
    assert [one["idempotencyKey"] for one in after[1:]] == [one["idempotencyKey"] for one in before]


def test_what_is_there_is_not_sent_again(script: Script, batch: Path) -> None:
    takes(script, known=3)
    result = run("submit", "--batch", batch)
    assert sent(script) == [["digits-4", "digits-5"]]
    assert result.stdout == "2 of 5 jobs submitted, 3 were there already. Batch b.\n"


def test_what_is_refused_is_told_once_for_all_that_have_it(script: Script, batch: Path) -> None:
    takes(script)

    def refuse(input: Json) -> Json:  # noqa: A002
        error = {"__typename": "InputError", "code": "INVALID", "message": "It is wrong."}
        refused = [
            {"index": index, "status": "REFUSED", "job": None,
             "userErrors": [error | {"field": ["input", "items", str(index), "spec", "pools", "0", "series"]}]}
            for index, _ in enumerate(input["items"])
        ]  # fmt: skip
        return {"userErrors": [], "outcomes": refused}

    script.fields["submitJobs"] = refuse
    result = run("submit", "--batch", batch)
    assert (result.exit_code, result.stderr) == (2, "5 × pools[0].series: It is wrong.\n")
    told = json.loads(run("submit", "--batch", batch, "--json").stdout)["outcomes"][4]["userErrors"]
    assert told == [{"code": "INVALID", "field": ["spec", "pools", "0", "series"], "message": "It is wrong."}]


def test_a_gateway_that_is_busy_is_given_time(script: Script, batch: Path) -> None:
    takes(script)
    limited = {
        "message": "Slow down.",
        "extensions": {"code": "RATE_LIMITED", "retryable": True, "retryAfterSeconds": 0},
    }
    script.instead = [
        JSONResponse({"errors": [limited]}, 429),
        PlainTextResponse("upstream is away", 503, {"retry-after": "0"}),
    ]
    assert run("submit", "--batch", batch).exit_code == 0
    assert sent(script) == [[f"digits-{number}" for number in range(1, 6)]]


@pytest.mark.parametrize(
    "words", [["--idempotency-key", "k"], ["--batch-id", "not a label"], ["--chunk", "0"], ["--chunk", "101"]]
)
def test_options_that_do_not_fit(script: Script, batch: Path, words: list[str]) -> None:
    takes(script)
    assert run("submit", "--batch", batch, *words).exit_code == 2
    assert sent(script) == []


def test_a_file_that_is_wrong_asks_no_gateway(script: Script, batch: Path) -> None:
    batch.write_text("matrix: {seed: 1}\n")
    result = run("submit", "--batch", batch)
    assert result.exit_code == 2
    assert "list of values" in result.stderr
    assert script.seen == []


@pytest.mark.parametrize(("states", "code"), [("SS", 0), ("SF", 1), ("SC", 3), ("FC", 1)])
def test_follow_ends_with_the_worst_outcome(script: Script, batch: Path, states: str, code: int) -> None:
    batch.write_text("batch: b\nmatrix: {seed: [1, 2]}\n")
    takes(script)
    found = script.fields["jobs"]
    named = {"S": "SUCCEEDED", "F": "FAILED", "C": "CANCELED"}
    jobs = [
        a_job(state=named[state]) | {"id": f"job-digits-{number}", "revision": 9}
        for number, state in enumerate(states, 1)
    ]
    runs = [job | {"state": "RUNNING", "ended": False, "revision": 3} for job in jobs]

    def listed(**given: Json) -> Json:
        if given["filter"].get("idempotencyKeys"):
            return dict(found(**given))
        return {"nodes": runs, "pageInfo": {"hasNextPage": False, "endCursor": None}}

    changes = [
        {"jobs": {"cursor": str(number), "kind": "UPDATED", "job": job}}
        for number, job in enumerate([jobs[0], runs[0], jobs[1]])
    ]
    script.fields |= {"feed": {"cursor": "c0"}}
    script.fields["jobs"] = lambda **given: listed(**given) if given.get("first") else stream(*changes)
    result = run("submit", "--batch", batch, "--follow", "--json")
    assert result.exit_code == code, result.stderr
    told = json_lines(result.stdout)
    assert [one["type"] for one in told] == ["submitted", "job", "job", "ended"]
    assert [call.get("after") for call in script.arguments("jobs") if not call.get("first")] == ["c0"]


# --- cancel by filter -------------------------------------------------------------------------------------------------


def outcomes(status: str, *numbers: int) -> list[Json]:
    return [{"status": status, "job": a_job() | {"id": f"job-{number}"}, "userErrors": []} for number in numbers]


def cancels(script: Script, matched: int) -> None:
    def cancel_jobs(dryRun: bool, **given: object) -> Json:  # noqa: N803
        calls = len(script.arguments("cancelJobs")) - 1
        done = {"userErrors": [], "dryRun": dryRun, "matchedCount": matched, "gpus": matched}
        if dryRun:
            return done | {"outcomes": outcomes("WOULD_CANCEL", *range(matched)), "remainingCount": 0}
        return done | {"outcomes": outcomes("REQUESTED", calls), "remainingCount": matched - calls}

    script.fields["cancelJobs"] = cancel_jobs


def test_cancel_by_filter_goes_on_until_nothing_remains(script: Script) -> None:
    cancels(script, 3)
    words = ("--label", "batch=b,c", "--label", "team", "--name-prefix", "x", "--state", "running", "--note", "enough")
    result = run("cancel", *words, "--yes")
    assert (result.exit_code, result.stdout) == (0, "3 of 3 jobs are being canceled.\n")
    asked = script.arguments("cancelJobs")
    assert [call["dryRun"] for call in asked] == [True, False, False, False]
    assert [call["maxMatched"] for call in asked] == [None, 3, 3, 3]
    assert {name: value for name, value in asked[0]["filter"].items() if value is not None} == {
        "labels": [
            {"key": "batch", "operator": "IN", "values": ["b", "c"]},
            {"key": "team", "operator": "EXISTS", "values": None},
        ],
        "namePrefix": "x", "states": ["RUNNING"],
    }  # fmt: skip
    assert asked[1]["note"] == "enough"


def test_a_dry_run_asks_for_nothing_else(script: Script) -> None:
    cancels(script, 3)
    result = run("cancel", "--name-prefix", "x", "--dry-run")
    assert result.exit_code == 0
    assert (
        "3 jobs that have not ended match, with 3 GPUs; 0 of them are ending already. Nothing was done."
        in result.stdout
    )
    assert [call["dryRun"] for call in script.arguments("cancelJobs")] == [True]


def test_without_a_terminal_somebody_has_to_say_yes(script: Script) -> None:
    cancels(script, 2)
    result = run("cancel", "--name-prefix", "x")
    assert result.exit_code == 2
    assert "2 jobs would be canceled. Say --yes" in result.stderr
    assert [call["dryRun"] for call in script.arguments("cancelJobs")] == [True]


def test_nothing_that_matches_is_nothing_to_ask(script: Script) -> None:
    cancels(script, 0)
    assert run("cancel", "--name-prefix", "x").stdout == "No job matches that has not ended.\n"
    assert json.loads(run("cancel", "--name-prefix", "x", "--json").stdout) == {
        "dryRun": False, "matchedCount": 0, "remainingCount": 0, "outcomes": [],
    }  # fmt: skip
    assert [call["dryRun"] for call in script.arguments("cancelJobs")] == [True, True]


@pytest.mark.parametrize(
    "words", [[], ["job-1", "--name-prefix", "x"], ["--name-prefix", "x", "--wait"], ["job-1", "--dry-run"]]
)
def test_one_job_or_a_filter(script: Script, words: list[str]) -> None:
    assert run("cancel", *words).exit_code == 2
    assert script.seen == []


# --- retry ------------------------------------------------------------------------------------------------------------


def retries(script: Script, status: str = "CREATED", *errors: Json) -> None:
    attempt = None if errors else {"number": 2, "state": "SUBMITTED"}
    job = None if errors else a_job(state="SUBMITTED")
    script.fields["retryJob"] = lambda **_: {
        "userErrors": list(errors), "status": status, "attempt": attempt, "job": job,
    }  # fmt: skip


def test_retry(script: Script) -> None:
    retries(script)
    result = run("retry", "job-1", "--note", "a node was bad")
    assert (result.exit_code, result.stdout) == (0, "Attempt 2 of job-1 is on its way.\n")
    [asked] = script.arguments("retryJob")
    assert (asked["id"], asked["note"]) == ("job-1", "a node was bad")
    assert asked["idempotencyKey"]
    retries(script, "REPLAYED")
    assert json.loads(run("retry", "job-1", "--json").stdout)["status"] == "REPLAYED"


def test_retry_and_follow(script: Script) -> None:
    retries(script)
    script.fields |= {
        "job": lambda **_: stream(change(1, a_job(state="FAILED"))),
        "jobLogs": lambda **_: stream(Ended("INTERNAL_SERVER_ERROR")),
    }
    assert run("retry", "job-1", "--follow").exit_code == 1


@pytest.mark.parametrize(("code", "expected"), [("WRONG_STATE", 2), ("NOT_FOUND", 5)])
def test_a_retry_that_is_refused(script: Script, code: str, expected: int) -> None:
    error = {"__typename": "InputError", "code": code, "field": ["id"], "message": "It is RUNNING."}
    retries(script, "REFUSED", error)
    assert run("retry", "job-1").exit_code == expected
