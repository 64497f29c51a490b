"""Processes that `starforge dev` starts, and ends whatever happens to it."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 2000


@dataclass
class Children:
    """Started in order, stopped in reverse; each writes to `<logs>/<name>.log`."""

    logs: Path
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _began: dict[str, int] = field(default_factory=dict)

    def start(self, name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a process in a session of its own, which gets SIGTERM should we die."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / f"{name}.log").open("ab") as log:
            self._began[name] = log.tell()
            self._running[name] = subprocess.Popen(
                command, env=dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=_end_with_parent,  # noqa: PLW1509
            )  # fmt: skip

    def ended(self) -> str | None:
        """Name of a process that ended by itself, if one did."""
        return next((name for name, process in self._running.items() if process.poll() is not None), None)

    def said(self, name: str, words: str) -> bool:
        """Whether a process has written `words` since it was started."""
        with (self.logs / f"{name}.log").open("rb") as log:
            log.seek(self._began[name])
            return words.encode() in log.read()

    def last_words(self, name: str) -> str:
        """The end of a process's log."""
        data = (self.logs / f"{name}.log").read_bytes()
        return data[-_TAIL_BYTES:].decode(errors="replace").strip()

    def stop(self, grace_s: float = 40) -> None:
        """SIGTERM to each, the last started first, SIGKILL to its session after the grace."""
        for name, process in reversed(list(self._running.items())):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(grace_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            del self._running[name]


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def wait_until(answers: Callable[[], bool], children: Children, *, timeout_s: float, what: str) -> None:
    """Wait until `answers()` is true; RuntimeError with the end of a log if a process ends, or the time does."""
    until = time.monotonic() + timeout_s
    while not answers():
        ended = children.ended()
        if ended:
            raise RuntimeError(f"{ended} ended before {what}:\n{children.last_words(ended)}")
        if time.monotonic() > until:
            raise RuntimeError(f"Gave up after {timeout_s:.0f} s of waiting for {what}; see {children.logs}.")
        time.sleep(0.05)
