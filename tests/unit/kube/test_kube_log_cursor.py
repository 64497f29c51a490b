"""A log that is read again goes on exactly where it was left."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.kube.watch.lines import LineSplitter
from starforge.adapters.kube.watch.logs.buffer import BATCH_LINES, Buffer
from starforge.adapters.kube.watch.logs.cursor import Cursor, Stamp, after, read_cursor, split_stamp
from starforge.adapters.kube.watch.logs.resume import Line, Resume
from starforge.domain.observation import RawLine


def read(lines: list[Line], last: Cursor | None) -> tuple[list[Line], Cursor | None]:
    """What is new in `lines`, and where that leaves off."""
    resume, new = Resume(last), []
    for line in lines:
        new += resume.feed(*line)
    new += resume.end()
    for stamp, _ in new:
        last = after(last, stamp)
    return new, last


def stamps(*nanos: int) -> list[Line]:
    return [(Stamp(100 + each // 10, each % 10), f"{count}".encode()) for count, each in enumerate(nanos)]


@given(st.lists(st.integers(0, 30), max_size=40).map(sorted), st.data())
def test_cut_anywhere_nothing_is_lost_and_nothing_twice(times: list[int], data: st.DataObject) -> None:
    log = stamps(*times)
    cut = data.draw(st.integers(0, len(log)))
    first, cursor = read(log[:cut], None)
    again = log if cursor is None else [line for line in log if line[0].seconds >= cursor.stamp.seconds - 1]
    rest, _ = read(again, cursor)
    assert first + rest == log


def test_lines_of_stdout_and_stderr_may_be_a_little_out_of_order() -> None:
    log = stamps(5, 7, 6, 8)
    _, cursor = read(log[:3], None)
    assert read(log, cursor)[0] == log[3:]


def test_what_was_rotated_away_does_not_hold_up_the_rest() -> None:
    log = stamps(50, 51, 90)
    assert read(log, Cursor(Stamp(100, 5), 3))[0] == log
    assert read(log[:2], Cursor(Stamp(105, 0), 9))[0] == log[1:2]


def test_a_cursor_is_text_and_asks_from_a_second_before() -> None:
    cursor = Cursor(Stamp(1795953600, 120), 3)
    assert str(cursor) == "1795953600.000000120/3"
    assert read_cursor(str(cursor)) == cursor
    assert cursor.since == "2026-11-29T11:59:59Z"
    assert read_cursor(None) is None
    with pytest.raises(ValueError, match="not a place"):
        read_cursor("12")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"2026-11-29T12:00:00.000000120Z hello ", (Stamp(1795953600, 120), b"hello ")),
        (b"2026-11-29T13:00:00.12+01:00 x", (Stamp(1795953600, 120_000_000), b"x")),
        (b"2026-11-29T12:00:00Z ", (Stamp(1795953600, 0), b"")),
        (b"unable to retrieve container logs for containerd://1", None),
    ],
)
def test_the_time_is_split_from_the_line(line: bytes, expected: tuple[Stamp, bytes] | None) -> None:
    assert split_stamp(line) == expected


@given(st.binary(max_size=60), st.lists(st.integers(1, 7), min_size=1, max_size=60))
def test_lines_do_not_depend_on_how_they_arrive(data: bytes, sizes: list[int]) -> None:
    whole, pieces = LineSplitter(), LineSplitter()
    expected, found, at = whole.feed(data), [], 0
    for size in sizes:
        found += pieces.feed(data[at : at + size])
        at += size
    found += pieces.feed(data[at:])
    assert (found, pieces.rest()) == (expected, whole.rest())


def test_an_endless_line_costs_no_more_than_what_is_kept() -> None:
    splitter = LineSplitter(longest=10)
    for _ in range(100):
        assert splitter.feed(b"x" * 1000) == []
    assert splitter.feed(b"\nshort\n") == [b"x" * 10, b"short"]


def test_a_buffer_gives_bounded_batches_and_then_its_end() -> None:
    told: list[int] = []
    buffer = Buffer(None, threading.Event(), lambda: told.append(1))
    lines = [(RawLine(b"x"), Cursor(Stamp(count, 0), 1)) for count in range(BATCH_LINES + 5)]
    buffer.add(lines)
    first = buffer.fetch()
    assert (len(first.lines), first.more, first.last) == (BATCH_LINES, True, False)
    assert first.cursor == lines[BATCH_LINES - 1][1]
    second = buffer.fetch()
    assert (len(second.lines), second.more, second.last, second.cursor) == (5, False, False, lines[-1][1])
    buffer.close()
    assert buffer.fetch().last
    assert len(told) == 2


def test_big_lines_make_small_batches() -> None:
    buffer = Buffer(None, threading.Event(), lambda: None)
    buffer.add([(RawLine(b"x" * 200_000), Cursor(Stamp(count, 0), 1)) for count in range(3)])
    assert [len(buffer.fetch().lines) for _ in range(2)] == [2, 1]
