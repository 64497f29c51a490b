"""Being the parent of everything in a run: adopting orphans, hearing when children end, hearing wishes to stop."""

import ctypes
import os
import select
import signal
import time
from types import FrameType, TracebackType
from typing import Self

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Whatever loses its parent below this process becomes its child, so that nothing can slip away by forking."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


class Ears:
    """Hears SIGCHLD, SIGTERM and SIGINT between `with` and its end. Children are reaped here and nowhere else."""

    def __init__(self) -> None:
        self.stop_wished = False
        self._codes: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Until the process ends, a late wish must not cut off what is still written.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)

    def code_of(self, pid: int) -> int | None:
        """How a child ended, -n for signal n; None while it runs."""
        self._reap()
        return self._codes.get(pid)

    def wait(self, until: float | None, *also: int) -> bool:
        """Waits for news, at most until `until` of the monotonic clock; whether one of `also` can be read."""
        seconds = None if until is None else max(until - time.monotonic(), 0)
        ready, _, _ = select.select([self._read, *also], [], [], seconds)
        if self._read in ready:
            os.read(self._read, 4096)
        return any(descriptor in ready for descriptor in also)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_wished = True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._codes[pid] = os.waitstatus_to_exitcode(status)
