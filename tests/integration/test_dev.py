"""`starforge dev` as a person runs it: it says ready, answers what the README says to ask, and leaves nothing."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

README = Path(__file__).parent.parent.parent / "README.md"
DOCUMENTS = re.findall(r"```graphql\n(.*?)```", README.read_text(), re.DOTALL)
READY_S = 120


@contextmanager
def dev(data: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`starforge dev` in a process of its own, and its address."""
    command = [sys.executable, "-m", "starforge.cli.main", "dev", "--port", "0", "--data", str(data), *arguments]
    env = {name: value for name, value in os.environ.items() if not name.startswith("FORGE_")}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("ready: http://127.0.0.1:"), line + process.stdout.read()
        yield process, line.removeprefix("ready: ").strip()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


def processes_of(data: Path) -> list[str]:
    """Command lines of processes whose environment names the data directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if f"FORGE_DATA_DIR={data}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, ValueError):
            continue
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dev(tmp_path_factory.mktemp("dev"), "--simulate", "3") as (_, url):
        yield url


def documents(kind: str) -> list[str]:
    return [document for document in DOCUMENTS if document.startswith(kind)]


def test_the_readme_has_one_document_of_each_kind() -> None:
    assert [len(documents(kind)) for kind in ("query", "mutation", "subscription")] == [1, 1, 1]


def test_the_readme_s_mutation_submits_a_job_once(running: str) -> None:
    for wanted in ("CREATED", "REPLAYED"):
        answer = httpx.post(running, json={"query": documents("mutation")[0]}, timeout=60).json()
        assert answer["data"]["submitJob"]["status"] == wanted, answer


def test_the_readme_s_query_answers(running: str) -> None:
    answer = httpx.post(running, json={"query": documents("query")[0]}, timeout=60).json()
    assert "errors" not in answer, answer
    assert answer["data"]["feed"]["cursor"]


def test_the_readme_s_subscription_streams(running: str) -> None:
    url = running.replace("http", "ws", 1)
    with connect(url, subprotocols=[Subprotocol("graphql-transport-ws")]) as socket:
        socket.send(json.dumps({"type": "connection_init"}))
        assert json.loads(socket.recv(30))["type"] == "connection_ack"
        payload = {"query": documents("subscription")[0]}
        socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
        first = json.loads(socket.recv(30))
    assert first["type"] == "next", first
    assert first["payload"]["data"]["jobs"]["kind"] in ("SNAPSHOT", "BOOKMARK")


def test_a_browser_gets_the_console(running: str) -> None:
    page = httpx.get(running, headers={"accept": "text/html"}, timeout=60)
    assert page.headers["content-type"].startswith("text/html")
    assert "graphql-transport-ws" in page.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_everything_it_started(tmp_path: Path, number: signal.Signals) -> None:
    with dev(tmp_path, "--simulate", "0") as (process, _):
        assert len(processes_of(tmp_path)) >= 4
        process.send_signal(number)
        process.communicate(timeout=120)
        assert process.returncode == 0
        assert processes_of(tmp_path) == []


def test_a_second_one_on_the_same_directory_is_told(tmp_path: Path) -> None:
    with dev(tmp_path, "--simulate", "0"):
        command = [sys.executable, "-m", "starforge.cli.main", "dev", "--port", "0", "--data", str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert "in use by another `starforge dev`" in second.stderr


def test_wrong_settings_stop_it_with_a_sentence_each(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "starforge.cli.main", "dev", "--port", "0", "--data", str(tmp_path)]
    env = {**os.environ, "FORGE_DEFAULT_CPUS": "many", "FORGE_K8S_SHM_SIZE": "big", "FORGE_NONSENSE": "1"}
    failed = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert failed.returncode == 2
    lines = failed.stderr.strip().splitlines()
    assert len(lines) == 3, failed.stderr
    assert {re.search(r"FORGE_[A-Z0-9_]+", line)[0] for line in lines} == {  # type: ignore[index]
        "FORGE_DEFAULT_CPUS", "FORGE_K8S_SHM_SIZE", "FORGE_NONSENSE",
    }  # fmt: skip
