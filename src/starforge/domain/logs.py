"""Logs: sources, lines with numbers from 1, and what is missing and why."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from starforge.domain.names import RunKey

DRIVER = "driver"
LINE_MAX_BYTES = 64 * 1024


class LogKind(StrEnum):
    DRIVER = "DRIVER"
    CONTAINER = "CONTAINER"
    INIT_CONTAINER = "INIT_CONTAINER"


class LogState(StrEnum):
    OPEN = "OPEN"
    CLOSED = "CLOSED"
    TRUNCATED = "TRUNCATED"


class LineMark(StrEnum):
    CUT = "CUT"
    INVALID_UTF8 = "INVALID_UTF8"


@dataclass(frozen=True)
class LogLine:
    """A line of text without its end; `number` counts from 1 within its source."""

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

    `bytes` counts the UTF-8 of every line with one newline each; `sha256` is of that whole text, None until closed.
    `object_key` names the archived text.
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


def text_of(lines: Iterable[LogLine]) -> bytes:
    """The lines as they are archived: UTF-8, one newline each."""
    return "".join(f"{line.text}\n" for line in lines).encode()


def checksum(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
