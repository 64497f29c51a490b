"""Frames: the user's output within a container's log, one frame a line.

`::starforge-out <unix time, 6 decimals> <start>-<end> <.|+|^> <bytes>`; `+` says that the line goes on in the next
frame, `^` that the output begins. Start and end are where the bytes, with the line's end, are in what the runner wrote
to its stdout, which Ray keeps as the driver's log: one frame starts where the one before it ended, else bytes are
missing. They are told, as what a line has of secrets is removed before it comes here. A frame without them is not
checked.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

FRAME = re.compile(rb"::starforge-out (\d{1,10}\.\d{6}) (?:(\d{1,15})-(\d{1,15}) )?([.+^]) ")


@dataclass(frozen=True)
class Frame:
    """A piece of the user's output; `span` is the place of its first byte and that after its last, if told."""

    at: datetime
    span: tuple[int, int] | None
    kind: bytes
    piece: bytes

    @property
    def begins(self) -> bool:
        """Whether it says that the output begins, and nothing else."""
        return self.kind == b"^"

    @property
    def ends(self) -> bool:
        """Whether a line ends with it."""
        return self.kind == b"."


def read_frame(data: bytes) -> tuple[bytes, Frame | None]:
    """What is before the frame in a line, all of it if there is none, and the frame."""
    found = FRAME.search(data)
    if not found:
        return data, None
    at = datetime.fromtimestamp(float(found[1]), UTC)
    span = None if found[2] is None else (int(found[2]), int(found[3]))
    return data[: found.start()], Frame(at, span, found[4], data[found.end() :])


def write_frame(frame: Frame) -> bytes:
    """The line that `read_frame` reads."""
    span = b"" if frame.span is None else b"%d-%d " % frame.span
    return b"::starforge-out %.6f %s%s %s" % (frame.at.timestamp(), span, frame.kind, frame.piece)
