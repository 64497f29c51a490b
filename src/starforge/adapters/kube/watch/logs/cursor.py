"""Where a container's log was left: in which of the lines of a time, and how far the driver's output in it came."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

# Kubernetes filters by whole seconds.
_BACK = timedelta(seconds=1)
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")
_TEXT = re.compile(r"(\d+)\.(\d{9})/(\d+)(?:\+(\d+))?(?:@(\d+))?")


@dataclass(frozen=True, order=True)
class Stamp:
    """A time to the nanosecond: whole seconds since the epoch and the rest."""

    seconds: int
    nanos: int

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC) + timedelta(microseconds=self.nanos // 1000)


@dataclass(frozen=True)
class Piece:
    """A part of a line, which `starts` at a byte of it; `ends` says that it is the last."""

    stamp: Stamp
    data: bytes
    starts: int = 0
    ends: bool = True


@dataclass(frozen=True)
class Cursor:
    """After the `count`th line that has this time, or after the first `part` bytes of it; 0 is before all lines.

    `place` is the end of the last frame of the driver, if there was one. As text it is
    `<seconds>.<nanos>/<count>[+<part>][@<place>]`.
    """

    stamp: Stamp
    count: int
    part: int | None = None
    place: int | None = None

    def __str__(self) -> str:
        part = "" if self.part is None else f"+{self.part}"
        place = "" if self.place is None else f"@{self.place}"
        return f"{self.stamp.seconds}.{self.stamp.nanos:09d}/{self.count}{part}{place}"

    @property
    def since(self) -> str:
        """The sinceTime to ask for, so that the last line is among the answer."""
        return f"{(datetime.fromtimestamp(self.stamp.seconds, UTC) - _BACK):%Y-%m-%dT%H:%M:%SZ}"


def read_cursor(text: str | None) -> Cursor | None:
    """The cursor that `str` of one gave; None for none. ValueError if it is not one."""
    if not text:
        return None
    match = _TEXT.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a place in a container's log")
    part, place = (None if each is None else int(each) for each in (match[4], match[5]))
    return Cursor(Stamp(int(match[1]), int(match[2])), int(match[3]), part, place)


def split_stamp(line: bytes) -> tuple[Stamp, bytes] | None:
    """The time before a line and the line itself; None if there is none, as in what a kubelet says of its troubles."""
    match = _STAMP.match(line)
    if not match:
        return None
    whole = datetime.fromisoformat(f"{match[1].decode()}{match[3].decode()}")
    nanos = int((match[2] or b"").ljust(9, b"0"))
    return Stamp(int(whole.timestamp()), nanos), line[match.end() :]


def after(last: Cursor | None, piece: Piece) -> Cursor:
    """The cursor after one more piece."""
    same = last is not None and last.stamp == piece.stamp
    count = (last.count if last and same else 0) + (piece.starts == 0)
    part = None if piece.ends else piece.starts + len(piece.data)
    return Cursor(piece.stamp, max(1, count), part, last.place if last else None)


def placed(cursor: Cursor, place: int) -> Cursor:
    """The same with another end of the driver's last frame."""
    return replace(cursor, place=place)
