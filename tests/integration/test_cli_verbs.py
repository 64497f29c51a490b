"""The client verbs as a script uses them: exit codes, what is on stdout and what on stderr, and readable JSON."""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from starforge.adapters.packing.packer import CapsulePacker
from starforge.cli.consoles import out_console
from starforge.cli.demo import run_demo
from starforge.cli.main import app
from tests.integration.scripted_gateway import TOKEN, Ended, Json, Script, json_lines, serve, stream
from tests.unit.cli.api_answers import a_job, a_line, a_source, change, chunk, page

SPEC = """\
name: digits
command: [python3, train.py]
pools:
  - name: train
    series: h200
    machines: 0
    gpusPerMachine: 1
"""
PROGRESS = {
    "step": 20, "total": 20, "fraction": 1.0, "stepsPerSecond": None, "estimatedEndAt": None,
    "metrics": [
        {"name": "loss", "value": 0.1, "nonFinite": None}, {"name": "accuracy", "value": 0.96111, "nonFinite": None},
    ],
}  # fmt: skip


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with serve(Script()) as serving:
        monkeypatch.setenv("FORGE_URL", serving.url)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        yield serving


@pytest.fixture
def code(tmp_path: Path) -> Path:
    directory = tmp_path / "code"
    directory.mkdir()
    (directory / "starforge.yaml").write_text(SPEC)
    (directory / "train.py").write_text("print('hello')\n")
    return directory


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def takes(script: Script, *changes: Json, lines: int = 2, present: bool = False) -> None:
    """Lets the gateway take a job that then goes through `changes`."""

    def prepare(input: Json) -> Json:  # noqa: A002
        upload = {"method": "PUT", "url": f"{script.url}/upload/zip", "headers": [{"name": "x-given", "value": "yes"}]}
        status = "PRESENT" if present else "UPLOAD_NEEDED"
        return {"userErrors": [], "status": status, "digest": input["digest"], "upload": None if present else upload}

    log = chunk(lines, [a_line(number) for number in range(1, lines + 1)], end=True)
    script.fields |= {
        "prepareCode": prepare,
        "submitJob": lambda **_: {"userErrors": [], "status": "CREATED", "job": a_job(state="SUBMITTED")},
        "job": lambda **_: stream(*(change(number, job) for number, job in enumerate(changes))),
        "jobLogs": lambda **_: stream(log),
    }


def refuses(script: Script, *errors: Json) -> None:
    takes(script)
    script.fields["submitJob"] = lambda **_: {"userErrors": list(errors), "status": "REFUSED", "job": None}


def user_error(kind: str, **given: Any) -> Json:
    return {"__typename": kind, "code": "INVALID", "field": None, "message": "It is wrong.", **given}


def test_submit_sends_the_code_and_the_spec(script: Script, code: Path, tmp_path: Path) -> None:
    takes(script)
    result = run("submit", code, "--idempotency-key", "mine", "--allow-unsatisfiable")
    assert result.exit_code == 0
    assert "Submitted digits as job-1 (sent 2 files" in result.stdout
    [asked], [given] = script.arguments("prepareCode"), script.arguments("submitJob")
    sent = script.uploads["zip"]
    assert hashlib.sha256(sent).hexdigest() == asked["input"]["transportSha256"]
    assert script.upload_headers[0]["content-length"] == str(len(sent)) == str(asked["input"]["bytes"])
    assert script.upload_headers[0]["x-given"] == "yes"
    assert "transfer-encoding" not in script.upload_headers[0]
    assert "authorization" not in script.upload_headers[0]
    (tmp_path / "sent.zip").write_bytes(sent)
    packed = CapsulePacker(tmp_path).open_code(tmp_path / "sent.zip")
    assert given["input"]["code"] == {"digest": packed.digest}
    assert given["input"]["idempotencyKey"] == "mine"
    assert given["input"]["allowUnsatisfiable"] is True
    assert given["input"]["spec"]["project"] is None


def test_code_that_is_there_is_not_sent(script: Script, code: Path) -> None:
    takes(script, present=True)
    result = run("submit", code, "--json")
    answer = json.loads(result.stdout)
    assert (answer["status"], answer["sentBytes"], answer["job"]["id"]) == ("CREATED", 0, "job-1")
    assert script.uploads == {}


@pytest.mark.parametrize(("state", "expected"), [("SUCCEEDED", 0), ("FAILED", 1), ("CANCELED", 3)])
def test_follow_ends_with_the_outcomes_exit_code(script: Script, code: Path, state: str, expected: int) -> None:
    reason = {"code": "USER_CODE", "message": "It failed.", "advice": "Look.", "whose": "USER",
              "since": "2026-03-01T09:30:00.000Z"}  # fmt: skip
    takes(script, a_job(state="PENDING"), a_job(progress=PROGRESS), a_job(state=state, exitCode=7, reason=reason))
    result = run("submit", code, "--follow")
    assert result.exit_code == expected
    told = [line for line in result.stdout.splitlines() if line.startswith("[starforge]")]
    assert told == [
        "[starforge] digits job-1: PENDING",
        "[starforge] digits job-1: RUNNING",
        "[starforge] 20/20  100%  loss 0.1000  accuracy 0.9611",
        f"[starforge] digits job-1: {state} with exit code 7",
        "[starforge] USER_CODE It failed. Look.",
    ]
    assert [line for line in result.stdout.splitlines() if line.startswith("line")] == ["line 1", "line 2"]


def test_a_job_is_followed_to_its_end_also_without_its_log(script: Script, code: Path) -> None:
    takes(script, a_job(), a_job(state="SUCCEEDED"))
    script.fields["jobLogs"] = lambda **_: stream(Ended("INTERNAL_SERVER_ERROR"))
    result = run("submit", code, "--follow")
    assert result.exit_code == 0
    assert "[starforge] Its log can't be followed any more: Ended by INTERNAL_SERVER_ERROR." in result.stdout


def test_follow_with_json_is_one_object_a_line(script: Script, code: Path) -> None:
    takes(script, a_job(), a_job(state="SUCCEEDED"))
    objects = json_lines(run("submit", code, "--follow", "--json").stdout)
    assert objects[0]["type"] == "submitted"
    assert [one["job"]["state"] for one in objects if one["type"] == "job"] == ["RUNNING", "SUCCEEDED"]
    assert [one["text"] for one in objects if one["type"] == "log"] == ["line 1", "line 2"]


def test_what_the_gateway_refuses_is_told_in_the_words_of_the_file(script: Script, code: Path) -> None:
    refuses(
        script,
        user_error("InputError", field=["input", "spec", "pools", "0", "machines"], message="A pool needs a machine."),
        user_error("CodeError", field=["input", "code"], message="x.py: no.", path="x.py", rule="LINK"),
    )
    result = run("submit", code)
    assert result.exit_code == 2
    rows = [line.split() for line in result.stderr.splitlines()]
    assert ["6", "pools[0].machines", "A", "pool", "needs", "a", "machine."] in rows
    assert ["x.py", "x.py:", "no."] in rows


def test_a_refusal_with_json(script: Script, code: Path) -> None:
    refuses(script, user_error("InputError", field=["input", "spec", "pools", "0", "machines"]))
    result = run("submit", code, "--json")
    assert result.exit_code == 2
    [error] = json.loads(result.stdout)["userErrors"]
    assert (error["field"], error["line"], error["code"]) == (["pools", "0", "machines"], 6, "INVALID")


def test_a_file_that_is_no_spec_asks_no_gateway(script: Script, code: Path) -> None:
    (code / "starforge.yaml").write_text(SPEC + "comand: [x]\n")
    result = run("submit", code)
    assert result.exit_code == 2
    assert "did you mean `command`?" in result.stderr
    assert script.seen == []


def test_code_with_a_secret_is_refused_before_anything_is_sent(script: Script, code: Path) -> None:
    (code / "key.txt").write_text("-----BEGIN RSA PRIVATE " + "KEY-----\nabc\n")
    result = run("submit", code, "--json")
    assert result.exit_code == 2
    [error] = json.loads(result.stdout)["userErrors"]
    assert (error["path"], error["rule"]) == ("key.txt", "PRIVATE_KEY")
    assert script.seen == []


@pytest.mark.parametrize("words", [["jobs"], ["job", "x"], ["logs", "x"], ["logs", "x", "--follow"], ["cancel", "x"]])
def test_nobody_there(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setenv("FORGE_URL", "http://127.0.0.1:1")
    result = run(*words)
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.count("\n") == 1
    assert "starforge dev" in result.stderr


@pytest.mark.parametrize("words", [["jobs"], ["job", "x"], ["logs", "x"], ["logs", "x", "--follow"], ["cancel", "x"]])
def test_a_wrong_token(script: Script, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "wrong")
    result = run(*words)
    assert (result.exit_code, result.stdout) == (4, "")
    assert "FORGE_TOKEN" in result.stderr
    assert "wrong" not in result.stderr


def test_a_wrong_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_URL", "nonsense")
    result = run("jobs")
    assert result.exit_code == 2
    assert "FORGE_URL" in result.stderr


def test_something_else_at_the_address(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_URL", f"{script.url}/elsewhere")
    result = run("jobs")
    assert result.exit_code == 4
    assert "is not StarForge" in result.stderr


@pytest.mark.parametrize("words", [["job"], ["logs"], ["logs", "--follow"]])
def test_an_unknown_job(script: Script, words: list[str]) -> None:
    script.fields |= {"feed": {"at": "2026-03-01T09:30:00.000Z"}, "job": None}
    result = run(*words, "nope")
    assert (result.exit_code, result.stdout) == (5, "")
    assert "There is no job nope" in result.stderr


def test_cancel_of_an_unknown_job(script: Script) -> None:
    error = user_error("InputError", code="NOT_FOUND", field=["id"])
    script.fields["cancelJob"] = {"userErrors": [error], "status": "REFUSED", "job": None}
    assert run("cancel", "nope").exit_code == 5


def test_cancel_and_wait(script: Script) -> None:
    script.fields["cancelJob"] = lambda **_: {"userErrors": [], "status": "REQUESTED", "job": a_job()}
    script.fields["job"] = lambda **_: stream(change(1, a_job()), change(2, a_job(state="CANCELED")))
    result = run("cancel", "job-1", "--note", "enough", "--grace", 5, "--wait", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["job"]["state"] == "CANCELED"
    assert script.arguments("cancelJob") == [{"id": "job-1", "attempt": None, "note": "enough", "graceSeconds": 5}]


def test_jobs_as_a_table_and_as_json_over_several_pages(script: Script) -> None:
    def jobs(first: int, after: str | None = None, **_: object) -> Json:
        start = int(after or 0)
        nodes = [a_job(id=f"job-{number}", name="[bold]x") for number in range(start, min(start + first, 250))]
        info = {"hasNextPage": start + first < 250, "endCursor": str(start + first)}
        return {"nodes": nodes, "pageInfo": info, "totalCount": 250, "totalCountExact": True}

    script.fields |= {"feed": {"at": "2026-03-01T09:31:00.000Z"}, "jobs": jobs}
    answer = json.loads(run("jobs", "--first", 230, "--state", "running", "--active", "--json").stdout)
    assert [job["id"] for job in answer["nodes"]] == [f"job-{number}" for number in range(230)]
    which = {name: value for name, value in script.arguments("jobs")[0]["filter"].items() if value is not None}
    assert which == {"states": ["RUNNING"], "active": True}
    result = run("jobs", "--first", 2)
    assert result.stdout.splitlines()[1].split() == ["job-0", "[bold]x", "default", "RUNNING", "1", "1", "min"]
    assert "The newest 2 of 250" in result.stderr


def test_all_about_a_job(script: Script) -> None:
    script.fields |= {"feed": {"at": "2026-03-01T09:31:00.000Z"}, "job": a_job(progress=PROGRESS)}
    assert json.loads(run("job", "job-1", "--json").stdout)["progress"]["metrics"][1]["value"] == 0.96111
    shown = run("job", "job-1").stdout
    assert "accuracy 0.9611" in shown
    assert "python3 train.py" in shown


def test_all_lines_of_a_log_page_by_page(script: Script) -> None:
    def logs(after: str | None = None, **_: object) -> Json:
        first = int(after or 0) + 1
        lines = [a_line(number) for number in range(first, min(first + 1000, 2501))]
        return page(lines, total=2500, after=str(first + 999) if first + 999 < 2500 else None)

    script.fields["job"] = lambda **_: a_job(logs=logs)
    assert run("logs", "job-1").stdout.splitlines() == [f"line {number}" for number in range(1, 2501)]


def test_the_tail_of_a_log_as_json_with_its_gap(script: Script) -> None:
    gap = {"afterLine": 4, "message": "the node was lost.", "lines": 12}
    found = page([a_line(9, "\x1b[31mé")], total=9, source=a_source(9, gaps=[gap]))
    script.fields["job"] = lambda **_: a_job(logs=lambda last, **_: found)
    result = run("logs", "job-1", "--tail", 1, "--json")
    assert json_lines(result.stdout) == [{"type": "log", "number": 9, "at": None, "text": "\x1b[31mé", "marks": []}]
    assert result.stderr == "12 lines are missing after line 4: the node was lost.\n"


def test_a_log_that_is_not_there(script: Script) -> None:
    nothing = {**page([], total=0), "source": None}
    script.fields["job"] = lambda **_: a_job(logs=nothing, logSources=[a_source()])
    result = run("logs", "job-1", "--source", "pod/x/y")
    assert result.exit_code == 5
    assert "there are: driver" in result.stderr


def test_a_log_whose_store_is_away(script: Script) -> None:
    script.fields["job"] = lambda **_: a_job(logs=None)
    assert run("logs", "job-1").exit_code == 4


def test_pack_shows_what_goes_and_what_is_left_out(code: Path, tmp_path: Path) -> None:
    (code / ".git").mkdir()
    (code / "data.bin").write_bytes(b"x" * 5000)
    (code / ".gitignore").write_text("*.log\n")
    (code / "a.log").touch()
    shown = run("pack", code, "--dry-run").stdout
    assert "4 files" in shown
    assert "4.9 KiB  data.bin" in shown
    assert [line.split() for line in shown.splitlines()][-2:] == [[".git", ".git"], [".gitignore", "a.log"]]
    answer = json.loads(run("pack", code, "--json", "-o", tmp_path / "code.zip").stdout)
    assert answer["digest"] in shown
    with zipfile.ZipFile(tmp_path / "code.zip") as archive:
        assert sorted(archive.namelist()) == sorted(f"code/{file['path']}" for file in answer["files"])


def test_pack_writes_nothing_on_a_dry_run(code: Path, tmp_path: Path) -> None:
    assert run("pack", code, "--dry-run", "-o", tmp_path / "x.zip").exit_code == 2
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize("words", [["nope"], ["jobs", "--state", "nope"], ["submit", "/nowhere"], ["logs"]])
def test_wrong_usage(words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_the_exit_codes_are_told_in_the_help() -> None:
    assert "Exit codes: 0 done" in run("--help").stdout


def test_the_demo_ends_with_its_line(script: Script, code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    takes(script, a_job(), a_job(state="SUCCEEDED", progress=PROGRESS))
    result = run_demo(f"{script.url}/graphql", code, out_console())
    assert (result.state, result.accuracy) == ("SUCCEEDED", 0.96111)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"demo: SUCCEEDED accuracy=0.9611 seconds={result.seconds:.1f}"
