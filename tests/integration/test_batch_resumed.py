"""`starforge submit --batch` as scripts run it: killed in the middle, cut off by a gateway that restarts, run again."""

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from starforge.domain.actions.create_token import create_token
from starforge.domain.rights import Role
from starforge.domain.tokens import TokenDraft
from tests.integration.gateway import PATIENCE_S, Gateway, Live, idle_platform, platform

Json = dict[str, Any]
JOBS = 250
SPEC = """\
name: sweep-{lr}-{seed}-{outcome}
command: [python3, train.py, --lr, "{lr}"]
env:
  - {name: SIMULATED_OUTCOME, value: "{outcome}"}
  - {name: SIMULATED_SECONDS, value: "10"}
pools: [{name: main, series: h200, machines: 1, gpusPerMachine: 1}]
"""
MATRIX = "matrix:\n  lr: [{lrs}]\n  seed: [{seeds}]\n  outcome: [{outcomes}]\n"
ALL = """
subscription($batch: String!) {
  jobs(filter: { labels: [{ key: "batch", values: [$batch] }] }) { kind jobId }
}
"""
COUNT = """
query($batch: String!, $after: String) {
  jobs(filter: { labels: [{ key: "batch", values: [$batch] }] }, first: 100, after: $after) {
    totalCount nodes { id name idempotencyKey } pageInfo { hasNextPage endCursor }
  }
}
"""


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "runner"


def a_batch(directory: Path, lrs: int, seeds: int, *outcomes: str) -> Path:
    """A batch file beside its code."""
    directory.mkdir()
    (directory / "starforge.yaml").write_text(SPEC)
    (directory / "train.py").write_text("print('hello')\n")
    values = MATRIX.format(
        lrs=", ".join(f"{number}e-3" for number in range(lrs)), seeds=", ".join(map(str, range(seeds))),
        outcomes=", ".join(outcomes),
    )  # fmt: skip
    (directory / "jobs.yaml").write_text(values)
    return directory / "jobs.yaml"


@contextmanager
def running(gateway: Gateway, path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own, killed at the end if it is there still."""
    env = os.environ | {"FORGE_URL": gateway.url, "FORGE_TOKEN": gateway.token}
    command = [sys.executable, "-m", "starforge.cli.main", "submit", "--batch", str(path), "--json", *words]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE_S) == -signal.SIGKILL


def more_than(live: Live, known: set[str], count: int) -> None:
    """Return once so many jobs are there; their ids are in `known` then."""

    def enough(step: Json) -> bool:
        if step["jobId"]:
            known.add(step["jobId"])
        return len(known) > count

    live.until(enough)


def there(gateway: Gateway, batch: str) -> list[Json]:
    """Every job of the batch."""
    rows: list[Json] = []
    after = None
    while True:
        page = gateway.ask(COUNT, batch=batch, after=after)["jobs"]
        rows += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            assert page["totalCount"] == len(rows)
            return rows
        after = page["pageInfo"]["endCursor"]


def finished(process: subprocess.Popen[str]) -> tuple[list[Json], str]:
    out, err = process.communicate(timeout=PATIENCE_S * 4)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()] if "\n{" in out else [json.loads(out)], err


def test_killed_twice_and_cut_once_there_are_exactly_250_jobs(tmp_path: Path, cache: Path) -> None:
    path = a_batch(tmp_path / "code", 25, 10, "SUCCEED")
    options = ("--batch-id", "night", "--chunk", "10")
    known: set[str] = set()
    with idle_platform(tmp_path / "platform", cache) as around, ExitStack() as first, ExitStack() as last:
        gateway = first.enter_context(around.gateway())
        after_kills = [_killed(gateway, path, options, known) for _ in range(2)]
        process = last.enter_context(running(gateway, path, *options))
        _await_more(gateway, known)
        process.send_signal(signal.SIGSTOP)  # or a quick machine is done before the gateway is down
        at_restart = len(there(gateway, "night"))
        first.close()
        process.send_signal(signal.SIGCONT)
        _await_said(process, "Trying again")
        with around.gateway() as gateway:
            [summary], _ = finished(process)
            rows = there(gateway, "night")
            [once_more], _ = finished(last.enter_context(running(gateway, path, *options)))
    print(f"\njobs after each kill {after_kills}, at the restart {at_restart}, at the end {len(rows)}")  # noqa: T201
    assert 0 < after_kills[0] < after_kills[1] < at_restart < JOBS == len(rows)
    assert len({row["name"] for row in rows}) == len({row["idempotencyKey"] for row in rows}) == JOBS
    assert {one["job"] for one in summary["outcomes"]} == {row["id"] for row in rows}
    assert (summary["total"], summary["refused"]) == (JOBS, 0)
    assert (once_more["created"], once_more["replayed"]) == (0, JOBS)


def _await_said(process: subprocess.Popen[str], words: str) -> None:
    """Return once the command has said so."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"it ended without saying {words!r}")


def _killed(gateway: Gateway, path: Path, options: Sequence[str], known: set[str]) -> int:
    """How many jobs there are after a run was killed in the middle."""
    with running(gateway, path, *options) as process:
        _await_more(gateway, known)
        kill(process)
    known.update(row["id"] for row in there(gateway, "night"))
    return len(known)


def _await_more(gateway: Gateway, known: set[str]) -> None:
    """Return once there are jobs that were not known."""
    count = len(known)
    with gateway.live(ALL, batch="night") as live:
        more_than(live, known, count)


def test_a_batch_is_followed_to_its_end(tmp_path: Path, cache: Path) -> None:
    path = a_batch(tmp_path / "code", 2, 2, "SUCCEED", "FAIL")
    with (
        platform(tmp_path / "platform", cache) as around,
        around.gateway() as gateway,
        running(gateway, path, "--follow") as process,
    ):
        out, err = process.communicate(timeout=PATIENCE_S * 4)
    assert process.returncode == 1, err
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["type"] for one in told] == ["submitted"] + ["job"] * 8 + ["ended"]
    assert told[0]["created"] == 8
    assert len({one["job"]["id"] for one in told[1:-1]}) == 8
    assert (told[-1]["succeeded"], told[-1]["failed"], told[-1]["canceled"]) == (4, 4, 0)


def test_jobs_that_name_no_project_go_where_the_token_s_do(tmp_path: Path, cache: Path) -> None:
    path = a_batch(tmp_path / "code", 1, 2, "SUCCEED")
    with idle_platform(tmp_path / "platform", cache) as around, around.gateway() as gateway, ExitStack() as stack:
        store, at = gateway.parts.ports.store, gateway.parts.ports.now()
        draft = TokenDraft("ci", Role.SUBMITTER, ("vision",))
        _, shown = create_token(store, draft, at=at, random=lambda: secrets.token_hex(16))
        ours = replace(gateway, token=shown.text)
        others = finished(stack.enter_context(running(gateway, path, "--batch-id", "b")))[0]
        first, second = (finished(stack.enter_context(running(ours, path, "--batch-id", "b")))[0] for _ in range(2))
        everything = "{ jobs(first: 100) { nodes { project } } }"
        assert [job["project"] for job in ours.ask(everything)["jobs"]["nodes"]] == ["vision"] * 2
        assert len(gateway.ask(everything)["jobs"]["nodes"]) == 4
    assert [(one[0]["created"], one[0]["replayed"]) for one in (others, first, second)] == [(2, 0), (2, 0), (0, 2)]
