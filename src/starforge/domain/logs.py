"""Logs: sources, lines with numbers from 1, and what is missing and why."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from starforge.domain.names import RunKey

DRIVER = "driver"
LINE_MAX_BYTES = 64 * 1024
GAPS_MAX = 100


class LogKind(StrEnum):
    DRIVER = "DRIVER"
    CONTAINER = "CONTAINER"
    PREVIOUS_CONTAINER = "PREVIOUS_CONTAINER"
    INIT_CONTAINER = "INIT_CONTAINER"


class LogState(StrEnum):
    OPEN = "OPEN"
    INTERRUPTED = "INTERRUPTED"
    CLOSED = "CLOSED"
    TRUNCATED = "TRUNCATED"


class LineMark(StrEnum):
    CUT = "CUT"
    INVALID_UTF8 = "INVALID_UTF8"


@dataclass(frozen=True)
class LogLine:
    """A line of text without its end; `number` counts from 1 within its source.

    One that is longer than LINE_MAX_BYTES is several of them, of which all but the last are marked CUT.
    """

    number: int
    text: str
    at: datetime | None = None
    marks: tuple[LineMark, ...] = ()


@dataclass(frozen=True)
class LogGap:
    """Lines that could not be had after line `after_line`; `lines` is None when nobody can tell how many."""

    after_line: int
    message: str
    lines: int | None = None


@dataclass(frozen=True)
class LogSource:
    """One log of an attempt. `cursor` is where the fleet resumes it, `carry` what the parser holds of a line.

    `bytes` counts the UTF-8 of `text_of` all lines; `sha256` is of that whole text, None until closed.
    `object_key` names the archived text, `problem` says why it is INTERRUPTED.
    `read_at` is when a line of it last came to us.
    """

    run: RunKey
    key: str
    kind: LogKind
    state: LogState = LogState.OPEN
    lines: int = 0
    bytes: int = 0
    pod: str | None = None
    container: str | None = None
    first_line_at: datetime | None = None
    last_line_at: datetime | None = None
    closed_at: datetime | None = None
    sha256: str | None = None
    object_key: str | None = None
    cursor: str | None = None
    carry: str | None = None
    gaps: tuple[LogGap, ...] = ()
    problem: str | None = None
    read_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state in (LogState.CLOSED, LogState.TRUNCATED)

    def lines_in(self, size: int, most: int) -> int:
        """How many lines have about `size` bytes, if they are about equal; 1 to `most`."""
        return max(1, min(most, size // max(1, self.bytes // max(1, self.lines))))


def text_of(lines: Iterable[LogLine]) -> bytes:
    """The lines as they are archived: UTF-8, one newline each, and none where a line was cut and goes on."""
    return "".join(line.text if LineMark.CUT in line.marks else f"{line.text}\n" for line in lines).encode()


def cut_at(data: bytes | bytearray, longest: int = LINE_MAX_BYTES) -> int:
    """Where to cut a line that is longer than `longest`: there, or before the character that would be halved."""
    for back in range(1, min(4, longest) + 1):
        lead = data[longest - back]
        if lead & 0xC0 != 0x80:
            length = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
            return longest - back if length > back and longest > back else longest
    return longest


def checksum(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
