"""The user's log, its messages and the container's own lines, as they are in what a container's log holds.

The runner copies everything that the user's command prints to the container's stdout as frames (framing.py). Lines that
are no frames are the container's own.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from starforge.domain.framing import Frame, read_frame
from starforge.domain.observation import RawLine
from starforge.domain.text_lines import TextLine, cut_off, text_line
from starforge.domain.wire import Message, Trusts, split_wire


@dataclass(frozen=True)
class Missing:
    """Output of the user that is not there: after so many of the `lines`, and how many bytes, None if nobody knows."""

    after: int
    bytes: int | None


@dataclass(frozen=True)
class Parsed:
    """What some raw lines hold, each kind in order: the user's lines, the container's own, messages to the platform."""

    lines: tuple[TextLine, ...] = ()
    container: tuple[TextLine, ...] = ()
    messages: tuple[Message, ...] = ()
    missing: tuple[Missing, ...] = ()


@dataclass
class _Unfinished:
    """A line of which some frames came; at most LINE_MAX_BYTES are held, `goes_on` says that others were told."""

    at: datetime | None
    data: bytearray
    goes_on: bool = False


class FrameParser:
    """Turns a container's lines into the user's log. Keep `carry` beside the cursor of the last line fed to resume."""

    def __init__(self, *, trusts: Trusts, carry: str | None = None) -> None:
        self._trusts = trusts
        self._unfinished, self._next = _restored(carry) if carry else (None, None)
        self._lines: list[TextLine] = []
        self._container: list[TextLine] = []
        self._messages: list[Message] = []
        self._missing: list[Missing] = []

    @property
    def carry(self) -> str | None:
        """What is held of an unfinished line, and where the next frame starts, at most about 90 KiB; else None."""
        if self._unfinished is None and self._next is None:
            return None
        return json.dumps({"next": self._next, "line": self._unfinished and _stored(self._unfinished)})

    def feed(self, lines: Iterable[RawLine]) -> Parsed:
        """The next lines of the container's log, in order."""
        for line in lines:
            self._take(line)
        return self._taken()

    def feed_unframed(self, lines: Iterable[RawLine]) -> Parsed:
        """Lines of a log that holds the user's output as it is, such as Ray's own driver log."""
        for line in lines:
            self._piece(line.at, line.data, ends=not line.goes_on)
        return self._taken()

    def end(self) -> Parsed:
        """The log has ended: an unfinished line counts as it is."""
        self._finish()
        return self._taken()

    def _take(self, line: RawLine) -> None:
        # Output of the container that lacked a newline ends up before a frame, on the same line.
        own, frame = read_frame(line.data)
        if own or frame is None:
            held = bytearray(own)
            self._container += cut_off(held, line.at)
            self._container.append(text_line(bytes(held), line.at, cut=line.goes_on))
        if frame is not None:
            self._frame(frame)

    def _frame(self, frame: Frame) -> None:
        known = self._known(frame)
        if known is None:
            return
        if not frame.begins:
            self._piece(frame.at, frame.piece[known:], ends=frame.ends)

    def _known(self, frame: Frame) -> int | None:
        """How many of its bytes were read before, None if all; notes what is missing before it."""
        if frame.span is None:
            return 0
        start, end = frame.span
        expected = start if self._next is None and frame.begins else self._next
        if expected is not None and start < expected and end <= expected:
            return None
        self._next = end
        if expected is None or expected < start:
            self._finish()
            self._missing.append(Missing(len(self._lines), None if expected is None else start - expected))
            return 0
        return expected - start

    def _piece(self, at: datetime | None, piece: bytes, *, ends: bool) -> None:
        if self._unfinished is None:
            self._unfinished = _Unfinished(at, bytearray())
        held = self._unfinished
        held.data += piece
        told = cut_off(held.data, held.at)
        self._lines += told
        held.goes_on = held.goes_on or bool(told)
        if ends:
            self._finish()

    def _finish(self) -> None:
        if self._unfinished is not None:
            held, self._unfinished = self._unfinished, None
            line = text_line(bytes(held.data), held.at)
            # The rest of a line that was cut is no message, as its beginning is a line of the log.
            self._lines.append(line) if held.goes_on else self._user_line(line)

    def _user_line(self, line: TextLine) -> None:
        before, message = split_wire(line, trusts=self._trusts)
        if before is not None:
            self._lines.append(before)
        if message is not None:
            self._messages.append(message)

    def _taken(self) -> Parsed:
        parsed = Parsed(tuple(self._lines), tuple(self._container), tuple(self._messages), tuple(self._missing))
        self._lines, self._container, self._messages, self._missing = [], [], [], []
        return parsed


def _stored(held: _Unfinished) -> dict[str, object]:
    data = base64.b64encode(held.data).decode()
    return {"at": held.at and held.at.timestamp(), "goes_on": held.goes_on, "data": data}


def _restored(carry: str) -> tuple[_Unfinished | None, int | None]:
    held = json.loads(carry)
    line = held["line"]
    if line is None:
        return None, held["next"]
    at = None if line["at"] is None else datetime.fromtimestamp(line["at"], UTC)
    return _Unfinished(at, bytearray(base64.b64decode(line["data"])), line["goes_on"]), held["next"]
