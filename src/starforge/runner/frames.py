"""Framing of the user's output within the container's log, one frame a line and a write, so that it stays whole."""

from __future__ import annotations

from collections.abc import Iterator

MAX_FRAME_BYTES = 4000  # below PIPE_BUF, so that a write to a pipe is atomic
_MARK = b"::starforge-out "


def frames(data: bytes, at: float) -> Iterator[bytes]:
    """Frames of a piece of output read at `at` (epoch seconds): each line end in it ends a line of the log."""
    *lines, rest = data.split(b"\n")
    for line in lines:
        yield from _frames_of(line, at, ends=True)
    if rest:
        yield from _frames_of(rest, at, ends=False)


def _frames_of(line: bytes, at: float, *, ends: bool) -> Iterator[bytes]:
    head = _MARK + b"%.6f " % at
    room = MAX_FRAME_BYTES - len(head) - 3
    pieces = [line[start : start + room] for start in range(0, len(line), room)] or [b""]
    for piece in pieces[:-1]:
        yield head + b"+ " + piece + b"\n"
    yield head + (b". " if ends else b"+ ") + pieces[-1] + b"\n"
