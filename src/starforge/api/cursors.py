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
    except (binascii.Error, ValueError, TypeError) as wrong:
        raise CursorInvalid("This is not a cursor of StarForge; take one from an answer as it is.") from wrong
    if (version, found) != (_VERSION, kind):
        raise CursorInvalid("This cursor belongs to something else; take one from the same field or subscription.")
    return value


def feed_cursor(position: int) -> str:
    return _write("feed", position)


def read_feed_cursor(cursor: str) -> int:
    """The position of a feed cursor; CursorInvalid if it is none."""
    position = _read("feed", cursor)
    if isinstance(position, bool) or not isinstance(position, int) or position < 0:
        raise CursorInvalid("This is not a cursor of the feed; take one from `feed` or from a change.")
    return position


def row_cursor(key: Key) -> str:
    return _write("row", list(key))


def read_row_cursor(cursor: str | None) -> Key | None:
    """The key of a row's cursor; CursorInvalid if it is none."""
    if cursor is None:
        return None
    key = _read("row", cursor)
    if not isinstance(key, list) or not all(isinstance(part, str | int | float | None) for part in key):
        raise CursorInvalid("This is not the cursor of a row; take one from an edge.")
    return tuple(key)


def line_cursor(log: str, number: int) -> str:
    return _write("line", [log, number])


def read_line_cursor(cursor: str | None, log: str) -> int | None:
    """The line number of a log's cursor; CursorInvalid if it is none, or of another log."""
    if cursor is None:
        return None
    value = _read("line", cursor)
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], int) or value[1] < 0:
        raise CursorInvalid("This is not the cursor of a log line; take one from an edge or a chunk.")
    if value[0] != log:
        raise CursorInvalid(f"This cursor is of log {value[0]}, not of {log}.")
    return int(value[1])
