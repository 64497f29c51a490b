"""The wire between a job and the platform, read from a container's log.

The runner copies everything that the user's command prints to the container's stdout as frames (framing.py). Lines that
are no frames are the container's own. Within the user's lines, `::starforge:: {json}` is a message to the platform.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import cast

from starforge.domain.framing import Frame, read_frame
from starforge.domain.logs import LINE_MAX_BYTES, LineMark, cut_at
from starforge.domain.observation import RawLine

WIRE_MARK = "::starforge:: "
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_RAY_PREFIX = re.compile(r"\((?:.{0,400} )?pid=\d+(?:, ip=[^()]*)?\) *")
_METRICS_MAX = 256
_NAME_MAX = 200
_INTEGER_MAX = 2**63 - 1


class RefusedWhy(StrEnum):
    """Why a runner did not start the command."""

    CLAIMED = "claimed"
    UNCLAIMED = "unclaimed"
    CORRUPT = "corrupt"


@dataclass(frozen=True)
class Started:
    """The runner is about to start the command."""

    at: datetime


@dataclass(frozen=True)
class Exit:
    """The command ended with `code`; 128+n, and `signal` n, when a signal ended it."""

    code: int
    signal: int | None
    at: datetime


@dataclass(frozen=True)
class Refused:
    """The runner did not start the command."""

    why: RefusedWhy
    message: str


@dataclass(frozen=True)
class ProgressSaid:
    """What the code reports about itself; metrics may be NaN or infinite. `at` is when it was printed."""

    step: int | None
    total: int | None
    metrics: tuple[tuple[str, float], ...]
    at: datetime | None = None


Message = Started | Exit | Refused | ProgressSaid
Trusts = Callable[[str], bool]
"""Whether a nonce is that of the attempt, of which only a hash is stored."""


@dataclass(frozen=True)
class TextLine:
    """A line as people read it, without its end."""

    text: str
    at: datetime | None
    marks: tuple[LineMark, ...] = ()


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
            self._container += _cut(held, line.at)
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
        told = _cut(held.data, held.at)
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


def _cut(held: bytearray, at: datetime | None) -> list[TextLine]:
    """Takes what is beyond one line's length off the front of `held`, as lines that are cut."""
    told: list[TextLine] = []
    start = 0
    while len(held) - start > LINE_MAX_BYTES:
        size = cut_at(held[start : start + LINE_MAX_BYTES])
        told.append(text_line(bytes(held[start : start + size]), at, cut=True))
        start += size
    del held[:start]
    return told


def text_line(data: bytes, at: datetime | None, *, cut: bool = False) -> TextLine:
    """Bytes as text: what is not UTF-8, and NUL, which no database takes, becomes U+FFFD."""
    marks = [LineMark.CUT] if cut else []
    text = data.decode(errors="replace").replace("\0", "\ufffd")
    if text.encode() != data:
        marks.append(LineMark.INVALID_UTF8)
    return TextLine(text, at, tuple(marks))


def split_wire(line: TextLine, *, trusts: Trusts) -> tuple[TextLine | None, Message | None]:
    """The line that people see, if any is left, and the message in it, if it is a valid one."""
    start = line.text.rfind(WIRE_MARK + "{")
    if start < 0 or LineMark.CUT in line.marks:
        return line, None
    body = _ANSI.sub("", line.text[start + len(WIRE_MARK) :])
    message = read_message(body, trusts=trusts, at=line.at)
    if message is None:
        return line, None
    before = line.text[:start]
    plain = _ANSI.sub("", before)
    if not plain.strip() or _RAY_PREFIX.fullmatch(plain):
        return None, message
    return TextLine(before, line.at, line.marks), message


def read_message(body: str, *, trusts: Trusts, at: datetime | None) -> Message | None:
    """A message from its JSON, or None if it is not one: malformed, or the runner's without its nonce."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if kind == "progress":
        return _progress(value, at)
    nonce = value.get("nonce")
    if not isinstance(nonce, str) or not trusts(nonce):
        return None
    try:
        return _runner_message(kind, value)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _runner_message(kind: object, value: Mapping[str, object]) -> Message | None:
    if kind == "started":
        return Started(_time(value["at"]))
    if kind == "exit":
        return Exit(_integer(value["code"]), _optional_integer(value["signal"]), _time(value["at"]))
    if kind == "refused":
        return Refused(RefusedWhy(cast("str", value["why"])), str(value["message"]))
    return None


def _progress(value: Mapping[str, object], at: datetime | None) -> ProgressSaid | None:
    metrics = value.get("metrics") or {}
    if not isinstance(metrics, dict) or len(metrics) > _METRICS_MAX or not all(map(_is_name, metrics)):
        return None
    try:
        points = tuple((name, _number(number)) for name, number in metrics.items())
        return ProgressSaid(_optional_integer(value.get("step")), _optional_integer(value.get("total")), points, at)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _NAME_MAX and name.isprintable()


def _optional_integer(value: object) -> int | None:
    return None if value is None else _integer(value)


def _integer(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    if not 0 <= value <= _INTEGER_MAX:
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, str) and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _time(value: object) -> datetime:
    seconds = _number(value)
    if not isfinite(seconds) or not 0 <= seconds < 10**11:
        raise ValueError
    return datetime.fromtimestamp(seconds, UTC)


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
