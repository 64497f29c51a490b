"""Runs the user's command in the working directory and relays what it prints."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable

from .relay import Relay
from .signals import SignalRoom, kill_group

DRAIN_S = 5.0
_CHUNK = 65536
# What pex leaves in the environment of the runner, and what is none of the user's business.
_OURS = ("PEX", "_PEX_CACHE_ACCESS_LOCK", "STARFORGE_ATTEMPT_FILE")


def run_command(command: list[str], relay: Relay, signals: SignalRoom, *, drain_s: float = DRAIN_S) -> int:
    """The command's return code as subprocess has it: -n for signal n. 127 if there is no such command."""
    output, inlet = os.pipe()
    with _ChildEnds() as child_ends:
        try:
            process = _start(command, inlet)
        except OSError as error:
            os.close(output)
            relay.say(f"the command {command[0]!r} can't be started: {error.strerror}")
            return 127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126
        finally:
            os.close(inlet)
        signals.enter_running(process.pid)
        _relay_until_end(output, relay, child_ends, lambda: _has_ended(process.pid), drain_s)
        signals.enter_ended()
        # Before the wait that frees its number: what the command left behind must not outlive the job.
        kill_group(process.pid, signal.SIGKILL)
        os.close(output)
        return process.wait()


def _start(command: list[str], inlet: int) -> subprocess.Popen[bytes]:
    environment = {name: value for name, value in os.environ.items() if name not in _OURS}
    environment["PYTHONUNBUFFERED"] = "1"
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=inlet, stderr=inlet, env=environment, start_new_session=True
    )


class _ChildEnds:
    """A file descriptor that becomes readable when a child ends."""

    def __enter__(self) -> int:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._handler = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self._read

    def __exit__(self, *_error: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        signal.signal(signal.SIGCHLD, self._handler)
        os.close(self._read)
        os.close(self._write)


def _relay_until_end(output: int, relay: Relay, child_ends: int, has_ended: Callable[[], bool], drain_s: float) -> None:
    """Relays until the command has ended and its output too, or `drain_s` after its end at the latest."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    poll.register(child_ends, select.POLLIN)
    output_is_open = True
    deadline: float | None = None
    while output_is_open or deadline is None:
        if deadline is None and has_ended():
            deadline = time.monotonic() + drain_s
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and (left <= 0 or not output_is_open):
            return
        ready = dict(poll.poll(None if left is None else left * 1000))
        if child_ends in ready:
            os.read(child_ends, _CHUNK)
        if output in ready:
            data = os.read(output, _CHUNK)
            relay.write(data)
            if not data:
                poll.unregister(output)
                output_is_open = False


def _has_ended(pid: int) -> bool:
    """Without reaping it, so that its number, which is its group's, stays its own."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
