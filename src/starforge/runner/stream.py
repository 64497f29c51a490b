"""The stream that frames go to, usually the container's own stdout. It may be missing or stuck; the job runs anyway."""

from __future__ import annotations

import os
import select

PATIENCE_S = 30.0


class Stream:
    """Writes whole frames. A reader that takes nothing for PATIENCE_S loses frames until it takes some again."""

    def __init__(self, fd: int, *, patience_s: float = PATIENCE_S) -> None:
        self._fd = fd
        self._patience_s = patience_s
        self._stuck = False

    def write(self, frame: bytes, *, patient: bool = False) -> bool:
        """Whether it was written; OSError when it never can be."""
        while True:
            try:
                _write_all(self._fd, frame)
            except BlockingIOError:
                if not self._wait(patient=patient):
                    self._stuck = True
                    return False
            else:
                self._stuck = False
                return True

    def _wait(self, *, patient: bool) -> bool:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        seconds = self._patience_s if patient or not self._stuck else 0
        return bool(poll.poll(seconds * 1000))


def open_stream(path: str | None) -> Stream | None:
    """The stream at `path`, or None if there is none or it can't be opened."""
    if not path:
        return None
    try:
        # Not blocking, as a pipe without a reader would hold the job for ever.
        return Stream(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644))
    except OSError:
        return None


def _write_all(fd: int, frame: bytes) -> None:
    written = os.write(fd, frame)
    while written < len(frame):  # only a full disk or a signal does this; a pipe takes a frame whole or not at all
        written += os.write(fd, frame[written:])
