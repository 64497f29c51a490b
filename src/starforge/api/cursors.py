"""Opaque, versioned cursors: of the feed, of rows in a page, of log lines."""

import base64
import binascii
import json
from typing import Any

from starforge.domain.errors import CursorInvalid
from starforge.domain.queries import Key

_VERSION = 1


def _write(kind: str, value: Any) -> str:
    text = json.dumps([_VERSION, kind, value], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(kind: str, cursor: str) -> Any:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        version, found, value = json.loads(text)
    except (binascii.Error, ValueError, TypeError, RecursionError) as wrong:
        raise CursorInvalid("This is not a cursor of StarForge; take one from an answer as it is.") from wrong
    if (version, found) != (_VERSION, kind):
        raise CursorInvalid("This cursor belongs to something else; take one from the same field or subscription.")
    return value


def feed_cursor(position: int) -> str:
    return _write("feed", position)


def read_feed_cursor(cursor: str) -> int:
    """The position of a feed cursor; CursorInvalid if it is none."""
    position = _read("feed", cursor)
    if not _counts(position):
        raise CursorInvalid("This is not a cursor of the feed; take one from `feed` or from a change.")
    return int(position)


def restart_cursor() -> str:
    """The cursor of a snapshot that was not told to its end: it begins again."""
    return _write("restart", None)


def is_restart(cursor: str) -> bool:
    return cursor == restart_cursor()


def row_cursor(key: Key) -> str:
    return _write("row", list(key))


def read_row_cursor(cursor: str | None) -> Key | None:
    """The key of a row's cursor; CursorInvalid if it is none."""
    if cursor is None:
        return None
    key = _read("row", cursor)
    if not isinstance(key, list) or not key or not all(map(_is_part, key)):
        raise CursorInvalid("This is not the cursor of a row; take one from an edge.")
    return tuple(key)


def line_cursor(log: str, number: int) -> str:
    return _write("line", [log, number])


def read_line_cursor(cursor: str | None, log: str) -> int | None:
    """The line number of a log's cursor; CursorInvalid if it is none, or of another log."""
    if cursor is None:
        return None
    value = _read("line", cursor)
    if not isinstance(value, list) or len(value) != 2 or not _counts(value[1]):
        raise CursorInvalid("This is not the cursor of a log line; take one from an edge or a chunk.")
    if value[0] != log:
        raise CursorInvalid(f"This cursor is of log {value[0]}, not of {log}.")
    return int(value[1])


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_part(part: object) -> bool:
    """Whether a database can be asked about it: half of a surrogate pair is no text, and a huge number no number."""
    if isinstance(part, str):
        return part.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in part)
    if isinstance(part, int | float):
        return not isinstance(part, bool) and -(2**63) <= part < 2**63
    return part is None
