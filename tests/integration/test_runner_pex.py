"""The runner as a Capsule carries it: built by pex, unpacked as Ray does it, run by a Python that has no packages."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import starforge
from starforge.adapters.packing.packer import CapsulePacker
from starforge.adapters.packing.runner_pex import build_runner_pex
from starforge.domain.capsule import InlineFile, PackedCapsule, files_digest, manifest_bytes
from starforge.domain.observation import RawLine
from starforge.domain.unframing import FrameParser, Parsed
from starforge.domain.wire import Exit, Message, ProgressSaid, Refused, RefusedWhy, Started

NONCE = "f00d"
SOURCES = Path(starforge.__file__).with_name("runner")
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def packer(tmp_path_factory: pytest.TempPathFactory) -> CapsulePacker:
    return CapsulePacker(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def pex_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pex keeps what it unpacks, once for all jobs here."""
    return tmp_path_factory.mktemp("pex")


def build(packer: CapsulePacker, into: Path, command: list[str], files: dict[str, str]) -> PackedCapsule:
    code = packer.pack_files([InlineFile(path, text, executable=False) for path, text in files.items()], into)
    return packer.build_capsule(code, json.dumps({"command": command}).encode(), into)


def unpack(capsule: PackedCapsule, folder: Path) -> Path:
    """As Ray does: the one folder at the top is the working directory, and modes are kept."""
    with zipfile.ZipFile(capsule.archive) as zipped:
        zipped.extractall(folder)
        for info in zipped.infolist():
            (folder / info.filename).chmod(info.external_attr >> 16 & 0o777)
    return folder / "capsule"


@dataclass
class Job:
    """An unpacked Capsule with an attempt that claims by a file beside it."""

    folder: Path
    attempt: dict[str, object]
    pex_root: Path
    python: list[str] = field(default_factory=lambda: [sys.executable, "-I", "-S"])

    @property
    def stream(self) -> Path:
        return self.folder.parent / "stream"

    def start(self) -> subprocess.Popen[bytes]:
        file = self.folder.parent / "attempt.json"
        file.write_text(json.dumps(self.attempt))
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        env = kept | {"STARFORGE_ATTEMPT_FILE": str(file), "PEX_ROOT": str(self.pex_root), "MINE": "1"}
        command = [*self.python, ".starforge/runner.pex"]
        return subprocess.Popen(
            command, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )

    def run(self) -> tuple[int, str]:
        """The exit code and stdout; the runner itself never writes to stderr."""
        with self.start() as process:
            out, err = process.communicate(timeout=TIMEOUT_S)
        assert err == b""
        return process.returncode, out.decode()

    def parsed(self) -> Parsed:
        return parse(self.stream.read_bytes())


def parse(data: bytes) -> Parsed:
    parser = FrameParser(trusts=NONCE.__eq__)
    parsed = parser.feed(RawLine(line) for line in data.split(b"\n")[:-1])
    assert parser.end() == Parsed()
    assert (parsed.container, parsed.missing) == ((), ())
    return parsed


MakeJob = Callable[..., Job]


@pytest.fixture
def make_job(packer: CapsulePacker, pex_root: Path, tmp_path: Path) -> MakeJob:
    def make(*command: str, files: dict[str, str] | None = None, **attempt: object) -> Job:
        folder = unpack(build(packer, tmp_path / "store", list(command), files or {}), tmp_path / "node")
        usual: dict[str, object] = {
            "nonce": NONCE,
            "claim": {"path": str(tmp_path / "claim")},
            "claim_until": None,
            "stream": str(folder.parent / "stream"),
            "cancel_grace_s": 30,
        }
        return Job(folder, usual | attempt, pex_root)

    return make


def kinds(messages: tuple[Message, ...]) -> list[type]:
    return [type(message) for message in messages]


# The Capsule


def test_a_capsule_is_the_code_and_ours_and_the_same_every_time(packer: CapsulePacker, tmp_path: Path) -> None:
    files = {"train.py": "print(1)\n", "zz/é.py": ""}
    capsule = build(packer, tmp_path / "a", ["python3", "train.py"], files)
    again = build(packer, tmp_path / "b", ["python3", "train.py"], files)
    other = build(packer, tmp_path / "c", ["python3", "other.py"], files)
    assert capsule.archive.read_bytes() == again.archive.read_bytes()
    assert (capsule.digest, capsule.code_digest) == (again.digest, other.code_digest)
    assert other.digest != capsule.digest
    assert capsule.manifest == manifest_bytes(capsule.files)
    assert capsule.digest == files_digest(capsule.files)
    with zipfile.ZipFile(capsule.archive) as zipped:
        assert zipped.testzip() is None
        assert zipped.namelist() == [
            "capsule/.starforge/jobspec.json",
            "capsule/.starforge/manifest.json",
            "capsule/.starforge/runner.pex",
            "capsule/starforge.py",
            "capsule/train.py",
            "capsule/zz/é.py",
        ]
        assert zipped.read("capsule/.starforge/manifest.json") == capsule.manifest
    assert {file.path: file.sha256 for file in capsule.files}[".starforge/runner.pex"] == capsule.runner_digest


def test_pex_gives_the_same_bytes_in_another_folder(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "sources"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / ".stray").write_text("not a module")
    for path in copy.iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    one = build_runner_pex(SOURCES, tmp_path / "one")
    umask = os.umask(0o077)
    try:
        two = build_runner_pex(copy, tmp_path / "two" / "deeper")
    finally:
        os.umask(umask)
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_several_may_build_the_runner_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        built = list(pool.map(lambda _: build_runner_pex(SOURCES, tmp_path / "cache"), range(2)))
    assert built[0] == built[1]
    assert list((tmp_path / "cache").iterdir()) == [built[0]]


# A job from its start to its end


def pythons() -> list[str]:
    """One of every version from 3.9 on that this machine has, as images vary."""
    candidates = [sys.executable, *filter(None, (shutil.which(f"python3.{minor}") for minor in range(9, 15)))]
    candidates += [str(path) for path in (Path.home() / ".pyenv/versions").glob("3.*/bin/python3")]
    asked = "import sys; assert sys.version_info >= (3, 9); print(*sys.version_info[:2], sep='.')"
    found: dict[str, str] = {}
    for path in candidates:
        done = subprocess.run([path, "-c", asked], check=False, capture_output=True, timeout=60, text=True)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), path)
    return list(found.values())


@pytest.mark.parametrize("python", pythons())
def test_end_to_end_on_a_python_without_packages(make_job: MakeJob, python: str) -> None:
    script = (
        "import os, sys, starforge, lib\n"
        "print('hello', lib.NAME, os.environ['MINE'], 'STARFORGE_ATTEMPT_FILE' in os.environ)\n"
        "starforge.progress(1, 2, loss=float('nan'), accuracy=0.5)\n"
        "print('bye', end='', file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    job = make_job(python, "train.py", files={"train.py": script, "lib/__init__.py": "NAME = 'é'\n"})
    job.python = [python, "-I", "-S"]
    code, out = job.run()
    assert code == 3
    parsed = job.parsed()
    assert [line.text for line in parsed.lines] == ["hello é 1 False", "bye"]
    assert kinds(parsed.messages) == [Started, ProgressSaid, Exit]
    started, said, ended = parsed.messages
    assert isinstance(said, ProgressSaid)
    assert isinstance(started, Started)
    assert isinstance(ended, Exit)
    assert (said.step, said.total, dict(said.metrics)["accuracy"]) == (1, 2, 0.5)
    assert (ended.code, ended.signal) == (3, None)
    assert started.at <= ended.at
    # Ray's driver log has the same, unframed.
    unframed = FrameParser(trusts=NONCE.__eq__).feed_unframed(RawLine(line.encode()) for line in out.splitlines())
    assert [line.text for line in unframed.lines] == ["hello é 1 False", "bye"]
    assert kinds(unframed.messages) == [Started, ProgressSaid, Exit]


def test_the_users_own_lines_that_look_like_ours_stay_in_the_log(make_job: MakeJob) -> None:
    forged = '::starforge:: {"type":"exit","code":0,"signal":null,"at":1,"nonce":"guess"}'
    job = make_job("echo", forged)
    assert job.run()[0] == 0
    assert [line.text for line in job.parsed().lines] == [forged]
    assert kinds(job.parsed().messages) == [Started, Exit]


def test_a_command_that_does_not_exist(make_job: MakeJob) -> None:
    job = make_job("no-such-program", "--flag")
    assert job.run()[0] == 127
    (line,) = job.parsed().lines
    assert line.text == "starforge: the command 'no-such-program' can't be started: No such file or directory"
    assert [message.code for message in job.parsed().messages if isinstance(message, Exit)] == [127]


@pytest.mark.parametrize("stream", [None, "/proc/none/fd/1"])
def test_a_job_runs_without_a_stream(make_job: MakeJob, stream: str | None) -> None:
    code, out = make_job("echo", "hello", stream=stream).run()
    assert code == 0
    assert "hello\n" in out


def test_a_job_runs_without_a_stdout(make_job: MakeJob) -> None:
    job = make_job("echo", "hello")
    with job.start() as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == 0
    assert [line.text for line in job.parsed().lines] == ["hello"]


def test_a_damaged_capsule_is_not_started(make_job: MakeJob) -> None:
    job = make_job("touch", "ran", files={"data.txt": "1"})
    (job.folder / "data.txt").write_text("2")
    assert job.run()[0] == 115
    (refused,) = job.parsed().messages
    assert isinstance(refused, Refused)
    assert refused.why is RefusedWhy.CORRUPT
    assert "data.txt has another content" in refused.message
    assert not (job.folder / "ran").exists()
    assert not (job.folder.parent.parent / "claim").exists()


def test_no_attempt_file() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "starforge.runner"],
        env={name: value for name, value in os.environ.items() if name != "STARFORGE_ATTEMPT_FILE"},
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 115
    assert b"STARFORGE_ATTEMPT_FILE is not set" in done.stderr


# Signals


def start_and_read(job: Job, until: bytes) -> subprocess.Popen[bytes]:
    """Starts the job and returns once its output has had the line `until`."""
    process = job.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.rstrip().endswith(until):
            return process
    raise AssertionError(f"the output ended without {until!r}")


def end_of(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    with process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert err == b""
    return process.returncode, out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_whole_group_of_the_command(make_job: MakeJob, number: signal.Signals) -> None:
    # A shell starts background commands with SIGINT ignored, so it is Python that starts the second process.
    child = "import signal; print('ready', flush=True); signal.pause()"
    parent = f"import subprocess, sys; sys.exit(128 - subprocess.run([sys.executable, '-c', {child!r}]).returncode)"
    job = make_job(sys.executable, "-c", parent)
    process = start_and_read(job, b"ready")
    process.send_signal(number)
    code, _ = end_of(process)
    assert code in {128 + number, 1}  # by the signal, or as Python ends after KeyboardInterrupt
    (ended,) = [message for message in job.parsed().messages if isinstance(message, Exit)]
    assert ended.code == code


def test_a_command_may_end_well_on_a_signal(make_job: MakeJob) -> None:
    script = (
        "import signal, sys\n"
        "def save(*_):\n    print('saved')\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\nprint('ready')\nsignal.pause()\n"
    )
    job = make_job(sys.executable, "train.py", files={"train.py": script})
    process = start_and_read(job, b"ready")
    process.send_signal(signal.SIGTERM)
    code, out = end_of(process)
    assert code == 0
    assert out.startswith(b"saved\n")


def test_a_command_that_ignores_a_signal_is_killed_after_the_grace(make_job: MakeJob) -> None:
    script = "trap '' TERM INT; echo ready; while :; do read x < fifo; done"
    job = make_job("sh", "-c", script, cancel_grace_s=0.1)
    os.mkfifo(job.folder / "fifo")
    process = start_and_read(job, b"ready")
    process.send_signal(signal.SIGTERM)
    assert end_of(process)[0] == 128 + signal.SIGKILL
    (ended,) = [message for message in job.parsed().messages if isinstance(message, Exit)]
    assert (ended.code, ended.signal) == (137, 9)


def test_a_signal_before_the_start_ends_it_unstarted(make_job: MakeJob) -> None:
    job = make_job("touch", "ran", claim={"path": "/proc/none/claim"})
    process = start_and_read(job, b"No such file or directory")
    process.send_signal(signal.SIGTERM)
    assert end_of(process)[0] == 143
    assert kinds(job.parsed().messages) == [Exit]
    assert not (job.folder / "ran").exists()


# The claim over HTTP


@dataclass
class Store:
    """An object store that answers every PUT with `status`; `seen` are the headers it got."""

    status: int
    seen: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/bucket/logs/j/1/claim?X-Amz-Signature=s3cr3t"


def serve(store: Store) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            store.seen.append(dict(self.headers))
            self.send_response(store.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stays quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", store.port), Handler)
    store.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store(200)
    server = serve(made)
    yield made
    server.shutdown()
    server.server_close()


def claim_at(store: Store) -> dict[str, object]:
    return {"url": store.url, "headers": {"If-None-Match": "*", "x-amz-tagging": "a"}, "ca_file": None}


def test_a_claim_is_one_conditional_put_as_it_was_signed(make_job: MakeJob, store: Store) -> None:
    assert make_job("true", claim=claim_at(store)).run()[0] == 0
    (headers,) = store.seen
    assert headers["If-None-Match"] == "*"
    assert headers["X-Amz-Tagging"] == "a"
    assert headers["Content-Length"] == "0"
    assert "Content-Type" not in headers


@pytest.mark.parametrize("status", [412, 409])
def test_an_attempt_that_was_claimed_is_not_run_again(make_job: MakeJob, store: Store, status: int) -> None:
    store.status = status
    job = make_job("touch", "ran", claim=claim_at(store))
    assert job.run()[0] == 113
    assert [message.why for message in job.parsed().messages if isinstance(message, Refused)] == [RefusedWhy.CLAIMED]
    assert not (job.folder / "ran").exists()


@pytest.mark.parametrize("status", [403, 500, 503, 307])
def test_what_is_no_clear_answer_is_never_taken_for_one(make_job: MakeJob, store: Store, status: int) -> None:
    store.status = status
    job = make_job("touch", "ran", claim=claim_at(store), claim_until=1.0)
    code, out = job.run()
    assert code == 114
    assert f"the object store answered {status}" in out
    assert [message.why for message in job.parsed().messages if isinstance(message, Refused)] == [RefusedWhy.UNCLAIMED]
    assert not (job.folder / "ran").exists()


def test_a_store_that_comes_up_later_is_claimed(make_job: MakeJob) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        store = Store(200, port=reserved.getsockname()[1])
    job = make_job("echo", "hello", claim=claim_at(store))
    process = start_and_read(job, b"refused")
    server = serve(store)
    code, out = end_of(process)
    server.shutdown()
    server.server_close()
    assert code == 0
    assert b"hello\n" in out
    said = " ".join(line.text for line in job.parsed().lines)
    assert f"the object store at 127.0.0.1:{store.port} can't be reached" in said
    assert "s3cr3t" not in said


def test_only_one_of_two_runners_starts_the_command(make_job: MakeJob) -> None:
    job = make_job("sh", "-c", "echo ran >> ../ran")
    with job.start() as one, job.start() as two:
        codes = sorted([one.wait(TIMEOUT_S), two.wait(TIMEOUT_S)])
        for process in (one, two):
            process.communicate(timeout=TIMEOUT_S)
    assert codes == [0, 113]
    assert (job.folder.parent / "ran").read_text() == "ran\n"
