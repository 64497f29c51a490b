"""Running a command: return codes, exact output, and an end even when something holds the pipe."""

import os
import sys
from pathlib import Path

import pytest

from starforge.runner.command import run_command
from starforge.runner.relay import Relay
from starforge.runner.signals import SignalRoom


def run(tmp_path: Path, *command: str, drain_s: float = 5.0) -> tuple[int, bytes]:
    log = tmp_path / "driver.log"
    fd = os.open(log, os.O_CREAT | os.O_WRONLY)
    try:
        code = run_command(list(command), Relay(None, nonce="n", stdout=fd), SignalRoom(), drain_s=drain_s)
    finally:
        os.close(fd)
    return code, log.read_bytes()


def test_output_of_both_kinds_in_the_order_it_was_made(tmp_path: Path) -> None:
    script = "printf 'a\\0b'; printf '\\377err' >&2; printf '\\r\\n'; exit 3"
    assert run(tmp_path, "sh", "-c", script) == (3, b"a\0b\xfferr\r\n")


def test_much_output_is_whole(tmp_path: Path) -> None:
    code, data = run(tmp_path, "sh", "-c", "yes 0123456789abcde | head -c 3000000")
    assert code == 0
    assert data == (b"0123456789abcde\n" * 187_500)


def test_a_signal_is_negative(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "kill -9 $$")[0] == -9


def test_words_of_the_command_meet_no_shell(tmp_path: Path) -> None:
    assert run(tmp_path, "echo", "$(id); `id` *", "$HOME") == (0, b"$(id); `id` * $HOME\n")


@pytest.mark.parametrize(("command", "code"), [("no-such-command", 127), ("/etc/passwd/x", 127), ("/etc/passwd", 126)])
def test_commands_that_can_not_be_started(tmp_path: Path, command: str, code: int) -> None:
    got, data = run(tmp_path, command)
    assert got == code
    assert data.decode().startswith(f"starforge: the command {command!r} can't be started: ")


def test_the_environment_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STARFORGE_ATTEMPT_FILE", "/secret")
    monkeypatch.setenv("PEX", "/runner.pex")
    monkeypatch.setenv("MINE", "1")
    _, data = run(tmp_path, "env")
    names = {line.split(b"=")[0] for line in data.splitlines()}
    assert {b"MINE", b"PYTHONUNBUFFERED"} <= names
    assert not names & {b"PEX", b"STARFORGE_ATTEMPT_FILE"}


def test_it_leads_a_process_group_without_input(tmp_path: Path) -> None:
    script = "import os,sys; print(os.getpgid(0)==os.getpid(), repr(sys.stdin.read()))"
    assert run(tmp_path, sys.executable, "-c", script) == (0, b"True ''\n")


def test_what_outlives_the_command_neither_holds_the_job_nor_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 3>{tmp_path}/alive; sleep 1000 & echo done"
    assert run(tmp_path, "sh", "-c", script, drain_s=0.05) == (0, b"done\n")
    os.set_blocking(alive, True)
    assert os.read(alive, 1) == b""  # comes only when the last holder of the fifo is gone
    os.close(alive)


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    script = f"exec >&- 2>&-; (echo > {tmp_path}/go) & read x < {tmp_path}/go; exit 4"
    assert run(tmp_path, "sh", "-c", script) == (4, b"")
