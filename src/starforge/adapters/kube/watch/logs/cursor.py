"""Where a container's log was left: the time of its last line, and how many lines had that time."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# Kubernetes filters by whole seconds.
_BACK = timedelta(seconds=1)
_STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?")


@dataclass(frozen=True, order=True)
class Stamp:
    """A time to the nanosecond: whole seconds since the epoch and the rest."""

    seconds: int
    nanos: int

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC) + timedelta(microseconds=self.nanos // 1000)


@dataclass(frozen=True)
class Cursor:
    """After the `count`th line that has this time. As text it is `<seconds>.<nanos>/<count>`."""

    stamp: Stamp
    count: int

    def __str__(self) -> str:
        return f"{self.stamp.seconds}.{self.stamp.nanos:09d}/{self.count}"

    @property
    def since(self) -> str:
        """The sinceTime to ask for, so that the last line is among the answer."""
        return f"{(datetime.fromtimestamp(self.stamp.seconds, UTC) - _BACK):%Y-%m-%dT%H:%M:%SZ}"


def read_cursor(text: str | None) -> Cursor | None:
    """The cursor that `str` of one gave; None for none. ValueError if it is not one."""
    if not text:
        return None
    match = re.fullmatch(r"(\d+)\.(\d{9})/(\d+)", text)
    if not match:
        raise ValueError(f"{text!r} is not a place in a container's log")
    return Cursor(Stamp(int(match[1]), int(match[2])), int(match[3]))


def split_stamp(line: bytes) -> tuple[Stamp, bytes] | None:
    """The time before a line and the line itself; None if there is none, as in what a kubelet says of its troubles."""
    match = _STAMP.match(line)
    if not match:
        return None
    whole = datetime.fromisoformat(f"{match[1].decode()}{match[3].decode()}")
    nanos = int((match[2] or b"").ljust(9, b"0"))
    return Stamp(int(whole.timestamp()), nanos), line[match.end() :]


def after(last: Cursor | None, stamp: Stamp) -> Cursor:
    """The cursor after one more line."""
    return Cursor(stamp, last.count + 1 if last and last.stamp == stamp else 1)
