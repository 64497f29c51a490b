"""Where output goes: as it is to the runner's stdout (Ray's driver log), and framed to the stream."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from typing import Any

from .frames import frames, opening
from .stream import Stream

WIRE_MARK = "::starforge:: "
STDOUT = 1


class Relay:
    """Neither target may end the job: one that fails is left, and the other goes on.

    Frames have their place in Ray's driver log, which Ray may have begun: what is lost of them is found there.
    """

    def __init__(
        self, stream: Stream | None, *, nonce: str, stdout: int = STDOUT, clock: Callable[[], float] = time.time
    ) -> None:
        self._stream = stream
        self._nonce = nonce
        self._stdout: int | None = stdout
        self._clock = clock
        self._line_is_open = False
        self._place = _written_before(stdout)
        if stream is not None:
            self._write_frame(opening(clock(), self._place), patient=True)

    def write(self, data: bytes, *, patient: bool = False) -> None:
        """Output of the command, byte for byte."""
        if not data:
            return
        self._line_is_open = not data.endswith(b"\n")
        self._write_stdout(data)
        for frame in frames(data, self._clock(), self._place):
            self._write_frame(frame, patient=patient)
        self._place += len(data)

    def say(self, message: str) -> None:
        """A line of the runner's own, for people."""
        self._write_line(f"starforge: {message}")

    def report(self, message: dict[str, Any]) -> None:
        """A line for the platform, with the nonce that shows it is the runner's."""
        text = json.dumps({**message, "nonce": self._nonce}, separators=(",", ":"))
        self._write_line(WIRE_MARK + text)

    def _write_line(self, text: str) -> None:
        start = "\n" if self._line_is_open else ""
        self.write(f"{start}{text}\n".encode("utf-8", "backslashreplace"), patient=True)

    def _write_stdout(self, data: bytes) -> None:
        try:
            while data and self._stdout is not None:
                data = data[os.write(self._stdout, data) :]
        except OSError:
            self._stdout = None

    def _write_frame(self, frame: bytes, *, patient: bool) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(frame, patient=patient)
        except OSError:
            self._stream = None


def _written_before(fd: int) -> int:
    """Bytes in the file that a descriptor appends to; 0 if it is no file."""
    try:
        found = os.fstat(fd)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
