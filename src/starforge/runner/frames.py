"""Framing of the user's output within the container's log, one frame a line and a write, so that it stays whole."""

from __future__ import annotations

from collections.abc import Iterator

MAX_FRAME_BYTES = 4000  # below PIPE_BUF, so that a write to a pipe is atomic
_MARK = b"::starforge-out "


def opening(at: float, place: int) -> bytes:
    """The frame before all others: the output begins at `place`."""
    return _MARK + b"%.6f %d-%d ^ \n" % (at, place, place)


def frames(data: bytes, at: float, place: int) -> Iterator[bytes]:
    """Frames of a piece of output read at `at` (epoch seconds): each line end in it ends a line of the log.

    `place` is that of its first byte in all that was put out. Each frame tells where its bytes start and end there, so
    that whoever reads the frames sees when some are missing.
    """
    *lines, rest = data.split(b"\n")
    for line in lines:
        yield from _frames_of(line, at, place, ends=True)
        place += len(line) + 1
    if rest:
        yield from _frames_of(rest, at, place, ends=False)


def _frames_of(line: bytes, at: float, place: int, *, ends: bool) -> Iterator[bytes]:
    room = MAX_FRAME_BYTES - len(_head(at, place + len(line), place + len(line) + 1, b".")) - 1
    pieces = [line[start : start + room] for start in range(0, len(line), room)] or [b""]
    for piece in pieces[:-1]:
        yield _head(at, place, place + len(piece), b"+") + piece + b"\n"
        place += len(piece)
    end = place + len(pieces[-1]) + ends
    yield _head(at, place, end, b"." if ends else b"+") + pieces[-1] + b"\n"


def _head(at: float, start: int, end: int, mark: bytes) -> bytes:
    return _MARK + b"%.6f %d-%d %s " % (at, start, end, mark)
