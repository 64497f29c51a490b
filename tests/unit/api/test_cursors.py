"""Cursors: what goes in comes out, and what is none of ours is refused and never a defect."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.cursors import (
    feed_cursor,
    is_restart,
    line_cursor,
    read_feed_cursor,
    read_line_cursor,
    read_row_cursor,
    restart_cursor,
    row_cursor,
)
from starforge.domain.errors import CursorInvalid

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBER = st.integers(0, 2**63 - 1)
PART = st.one_of(TEXT, NUMBER, st.none(), st.floats(-1e9, 1e9))
LOG = "log.job-1.1.driver"


def forged(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@given(NUMBER)
def test_feed(position: int) -> None:
    assert read_feed_cursor(feed_cursor(position)) == position


@given(st.lists(PART, min_size=1, max_size=3))
def test_rows(key: list[Any]) -> None:
    assert read_row_cursor(row_cursor(tuple(key))) == tuple(key)


@given(TEXT, NUMBER)
def test_lines(log: str, number: int) -> None:
    assert read_line_cursor(line_cursor(log, number), log) == number


def test_no_cursor_is_no_place() -> None:
    assert read_row_cursor(None) is None
    assert read_line_cursor(None, LOG) is None


def test_a_restart_is_a_cursor_of_its_own() -> None:
    assert is_restart(restart_cursor())
    assert not is_restart(feed_cursor(1))
    with pytest.raises(CursorInvalid):
        read_feed_cursor(restart_cursor())


ALL = [feed_cursor(1), row_cursor(("a", 1)), line_cursor(LOG, 1), restart_cursor()]


def read(index: int, cursor: str) -> object:
    readers: list[Callable[[str], object]] = [read_feed_cursor, read_row_cursor, lambda one: read_line_cursor(one, LOG)]
    return readers[index](cursor)


@pytest.mark.parametrize("reader", [0, 1, 2])
@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_a_cursor_of_another_kind_is_refused(reader: int, kind: int) -> None:
    if reader != kind:
        with pytest.raises(CursorInvalid):
            read(reader, ALL[kind])


@pytest.mark.parametrize("reader", [0, 1, 2])
@given(text=st.one_of(st.text(), st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode())))
def test_any_text_is_a_cursor_or_refused(reader: int, text: str) -> None:
    with pytest.raises(CursorInvalid):
        read(reader, text)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    st.lists,
    max_leaves=5,
)


@given(kind=st.sampled_from(["feed", "row", "line"]), value=JSON, version=st.sampled_from([0, 1, 2, "1", None]))
def test_a_forged_cursor_is_a_place_or_refused(kind: str, value: Any, version: Any) -> None:
    cursor = forged([version, kind, value])
    for reader in range(3):
        try:
            place = read(reader, cursor)
        except CursorInvalid:
            continue
        assert version == 1
        assert place == (tuple(value) if kind == "row" else value if kind == "feed" else value[1])


@pytest.mark.parametrize("value", [True, -1, 1.5, "1", None, [], 2**63])
def test_what_is_no_position_is_refused(value: Any) -> None:
    with pytest.raises(CursorInvalid):
        read_feed_cursor(forged([1, "feed", value]))


@pytest.mark.parametrize("value", [[], "a", ["\ud800"], [2**63], [float("nan")], [True], [["a"]], {}])
def test_what_is_no_key_is_refused(value: Any) -> None:
    with pytest.raises(CursorInvalid):
        read_row_cursor(forged([1, "row", value]))


def test_a_line_of_another_log_is_refused() -> None:
    with pytest.raises(CursorInvalid, match="of log"):
        read_line_cursor(line_cursor("log.job-2.1.driver", 4), LOG)


@pytest.mark.parametrize("text", ["[" * 100_000, "1" * 10_000, '[1,"feed"', "\x00"])
def test_hostile_json_is_refused(text: str) -> None:
    with pytest.raises(CursorInvalid):
        read_feed_cursor(base64.urlsafe_b64encode(text.encode()).decode())
