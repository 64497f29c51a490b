import hashlib
import stat
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from starforge.adapters.local.unpacking import CapsuleUnusable, fetch, unpack
from starforge.domain.errors import ObjectStoreUnavailable


def nothing() -> None:
    """Nobody wants to stop."""


def zipped(path: Path, members: dict[str, str], mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, content)
    return path


def test_what_is_below_the_top_is_unpacked(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", {"capsule/train.py": "1", "capsule/.starforge/runner.pex": "2"})
    unpack(archive, tmp_path / "code", check=nothing)
    assert (tmp_path / "code/train.py").read_text() == "1"
    assert (tmp_path / "code/.starforge/runner.pex").read_text() == "2"


def test_files_that_can_be_executed_stay_so(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", {"capsule/run.sh": ""}, stat.S_IFREG | 0o755)
    unpack(archive, tmp_path / "code", check=nothing)
    assert (tmp_path / "code/run.sh").stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("name", ["capsule/../../evil", "/capsule/evil", "other/evil", "evil", "capsule"])
def test_nothing_is_written_elsewhere(tmp_path: Path, name: str) -> None:
    archive = zipped(tmp_path / "c.zip", {name: "x"})
    code = tmp_path / "a" / "code"
    code.parent.mkdir()
    with pytest.raises(CapsuleUnusable, match="no regular file below"):
        unpack(archive, code, check=nothing)
    assert [path for path in (tmp_path / "a").rglob("*") if path.is_file()] == []


def test_links_are_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", {"capsule/link": "/etc/passwd"}, stat.S_IFLNK | 0o777)
    with pytest.raises(CapsuleUnusable):
        unpack(archive, tmp_path / "code", check=nothing)


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.zip").write_text("no zip")
    with pytest.raises(CapsuleUnusable, match="no readable zip"):
        unpack(tmp_path / "c.zip", tmp_path / "code", check=nothing)


def test_a_capsule_with_the_right_checksum_is_fetched(tmp_path: Path) -> None:
    source = zipped(tmp_path / "c.zip", {"capsule/a": "1"})
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    fetch(source.as_uri(), {}, tmp_path / "copy.zip", sha256=digest, ca_file=None, check=nothing)
    assert (tmp_path / "copy.zip").read_bytes() == source.read_bytes()


def test_another_checksum_is_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "c.zip", {"capsule/a": "1"})
    with pytest.raises(CapsuleUnusable, match="another checksum"):
        fetch(source.as_uri(), {}, tmp_path / "copy.zip", sha256="0" * 64, ca_file=None, check=nothing)


def test_a_missing_capsule_is_told_without_its_url(tmp_path: Path) -> None:
    url = f"{(tmp_path / 'gone.zip').as_uri()}?signature=hush"
    with pytest.raises(CapsuleUnusable) as caught:
        fetch(url, {}, tmp_path / "copy.zip", sha256="0" * 64, ca_file=None, check=nothing)
    assert "can't be fetched" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_store_that_is_away_is_worth_asking_again(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("no directory")
    for place in ("objects/capsules/c.zip", "nowhere/c.zip"):
        with pytest.raises(ObjectStoreUnavailable, match="can't be fetched"):
            fetch((tmp_path / place).as_uri(), {}, tmp_path / "copy.zip", sha256="0" * 64, ca_file=None, check=nothing)


@contextmanager
def answering(status: int, *, says: int, sends: bytes) -> Iterator[str]:
    """A server that says that `says` bytes come, and sends others."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(says))
            self.end_headers()
            self.wfile.write(sends)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/c.zip?signature=hush"
        thread.join()


@pytest.mark.parametrize(
    ("status", "says", "error"),
    [
        (503, 1, ObjectStoreUnavailable),
        (429, 1, ObjectStoreUnavailable),
        (403, 1, CapsuleUnusable),
        (404, 1, CapsuleUnusable),
        (200, 2, ObjectStoreUnavailable),
    ],
)
def test_what_a_store_answers(tmp_path: Path, status: int, says: int, error: type[Exception]) -> None:
    with answering(status, says=says, sends=b"x") as url, pytest.raises(error) as caught:
        fetch(url, {}, tmp_path / "copy.zip", sha256="0" * 64, ca_file=None, check=nothing)
    assert "hush" not in str(caught.value)
