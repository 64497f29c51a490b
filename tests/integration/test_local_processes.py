"""Ending processes of this machine for sure, tried on real ones."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starforge.adapters.local import processes
from starforge.adapters.local.processes import Process

Start = Callable[..., tuple[subprocess.Popen[str], Process]]

WAITS = "print('ready', flush=True)\nimport signal\nsignal.pause()"
IGNORES_SIGTERM = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS
HAS_CHILD = (
    "import subprocess, sys\n"
    f"child = subprocess.Popen([sys.executable, '-c', {WAITS!r}], start_new_session=True)\n"
    "child.wait()"
)


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(code: str, **options: object) -> tuple[subprocess.Popen[str], Process]:
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )
        started.append(child)
        assert child.stdout.readline() == "ready\n"
        return child, processes.started(child.pid)

    yield start
    for child in started:
        for process in processes.descendants(child.pid):
            processes.send(process, signal.SIGKILL)
        child.kill()
        child.communicate()


def test_a_process_is_known_by_pid_and_start(start: Start) -> None:
    child, process = start(WAITS)
    assert process.alive
    assert not Process(process.pid, process.started + 1).alive
    assert not processes.send(Process(process.pid, process.started + 1), signal.SIGKILL)
    assert child.poll() is None


def test_a_zombie_is_not_alive(start: Start) -> None:
    _child, process = start(WAITS)
    processes.end([process], signal.SIGKILL, within_s=30)
    assert not process.alive
    assert processes.started(process.pid) == process


def test_descendants_are_found_across_sessions(start: Start) -> None:
    child, _process = start(HAS_CHILD)
    (below,) = processes.descendants(child.pid)
    assert os.getsid(below.pid) != os.getsid(child.pid)


def test_who_ignores_sigterm_is_killed(start: Start) -> None:
    child, process = start(IGNORES_SIGTERM)
    assert processes.end_all(lambda: [process] if process.alive else [], grace_s=0.1) == ()
    assert child.wait(timeout=30) == -signal.SIGKILL


def test_the_mark_in_the_environment_is_enough(start: Start, tmp_path: Path) -> None:
    _child, process = start(WAITS, env={"STARFORGE_RUN": "abc"})
    assert process in processes.holders(marker="STARFORGE_RUN=abc", scratch=tmp_path, sessions=())
    assert process not in processes.holders(marker="STARFORGE_RUN=ab", scratch=tmp_path, sessions=())


def test_a_session_counts_only_with_the_directory(start: Start, tmp_path: Path) -> None:
    _child, inside = start(WAITS, cwd=tmp_path, env={}, start_new_session=True)
    sessions = {inside.pid}
    assert processes.holders(marker="A=b", scratch=tmp_path, sessions=sessions) == [inside]
    assert processes.holders(marker="A=b", scratch=tmp_path, sessions=()) == []
    assert processes.holders(marker="A=b", scratch=tmp_path / "other", sessions=sessions) == []
