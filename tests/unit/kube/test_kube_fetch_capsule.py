"""The script of the init container, run as it runs there: by a Python of its own."""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from starforge.adapters.kube.rendering import fetch_capsule
from starforge.domain.refusal import BY_EXIT_CODE
from starforge.domain.wire import RefusedWhy

BODY = b"PK" + bytes(range(256)) * 5000
SHA256 = hashlib.sha256(BODY).hexdigest()


class Store(BaseHTTPRequestHandler):
    """Answers with what is left of `answers`, then with the body."""

    answers: ClassVar[list[int | str]] = []

    def do_GET(self) -> None:
        answer = self.answers.pop(0) if self.answers else 200
        self.send_response(answer if isinstance(answer, int) else 200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000] if answer == "cut" else b"y" * len(BODY) if answer == "other" else BODY)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        Store.answers = []
        yield f"http://127.0.0.1:{server.server_port}/a.zip?X-Amz-Signature=secret"
        server.shutdown()
        thread.join()


def fetch(url: str, target: Path) -> subprocess.CompletedProcess[str]:
    script = Path(fetch_capsule.__file__).read_text().replace("LONGEST_WAIT_S = 15", "LONGEST_WAIT_S = 0")
    env = {**os.environ, "CAPSULE_URL": url, "CAPSULE_FILE": str(target), "CAPSULE_SHA256": SHA256}
    return subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_the_whole_file_or_none(url: str, tmp_path: Path) -> None:
    Store.answers = [503, "cut", "other"]
    done = fetch(url, tmp_path / "a.zip")
    assert done.returncode == 0, done.stderr
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".zip"] == ["a.zip"]
    assert (tmp_path / "a.zip").read_bytes() == BODY
    assert done.stderr.count("Try ") == 3


def test_it_gives_up_at_once_where_asking_again_is_no_use(url: str, tmp_path: Path) -> None:
    Store.answers = [403]
    done = fetch(url, tmp_path / "a.zip")
    assert done.returncode == 1
    assert done.stderr == "The capsule can't be fetched: the object store answered 403.\n"


def test_it_gives_up_in_the_end_and_never_prints_the_url(url: str, tmp_path: Path) -> None:
    Store.answers = ["other"] * fetch_capsule.TRIES
    done = fetch(url, tmp_path / "a.zip")
    assert BY_EXIT_CODE[done.returncode] is RefusedWhy.CORRUPT
    assert not (tmp_path / "a.zip").exists()
    assert "secret" not in done.stderr + done.stdout


def test_a_store_that_is_away_is_told_by_the_exit_code_and_the_last_line(url: str, tmp_path: Path) -> None:
    Store.answers = [503] * fetch_capsule.TRIES
    done = fetch(url, tmp_path / "a.zip")
    assert BY_EXIT_CODE[done.returncode] is RefusedWhy.UNCLAIMED
    assert done.stderr.splitlines()[-1] == "The capsule can't be fetched: HTTP Error 503: Service Unavailable."
