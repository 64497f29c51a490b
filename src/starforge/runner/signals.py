"""SIGTERM and SIGINT: before the start they end the runner, afterwards they go to the command's process group."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType

FORWARDED = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """A signal came before the command was started."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


class SignalRoom:
    """Forwards within the handler itself, so that a signal is passed on even while a write blocks."""

    def __init__(self) -> None:
        self.grace_s = 30.0
        self._starting = False
        self._group: int | None = None
        self._early: list[int] = []

    def install(self) -> None:
        for number in FORWARDED:
            signal.signal(number, self._received)
        signal.signal(signal.SIGALRM, self._grace_is_over)

    def enter_starting(self) -> None:
        """From here on a signal waits for the command rather than ending the runner."""
        self._starting = True

    def enter_running(self, group: int) -> None:
        self._group = group
        while self._early:
            self._forward(self._early.pop(0))

    def enter_ended(self) -> None:
        """The command has ended: its group is no longer told anything."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._group = None

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self._group is not None:
            self._forward(number)
        elif self._starting:
            self._early.append(number)
        else:
            raise Stopped(number)

    def _forward(self, number: int) -> None:
        kill_group(self._group, number)
        if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
            signal.setitimer(signal.ITIMER_REAL, max(self.grace_s, 0.001))

    def _grace_is_over(self, _number: int, _frame: FrameType | None) -> None:
        kill_group(self._group, signal.SIGKILL)


def kill_group(group: int | None, number: int) -> None:
    """Signals a process group that may have ended already."""
    if group is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
