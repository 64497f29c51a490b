"""A log that is read again goes on exactly where it was left."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.kube.watch.lines import LineSplitter
from starforge.adapters.kube.watch.logs.buffer import BATCH_BYTES, BATCH_LINES, Buffer
from starforge.adapters.kube.watch.logs.cursor import Cursor, Piece, Stamp, after, placed, read_cursor, split_stamp
from starforge.adapters.kube.watch.logs.pieces import Pieces
from starforge.adapters.kube.watch.logs.resume import Resume
from starforge.adapters.kube.watch.logs.room import Room
from starforge.domain.observation import RawLine


def read(lines: list[Piece], last: Cursor | None) -> tuple[list[Piece], Cursor | None]:
    """What is new in `lines`, and where that leaves off."""
    resume, new = Resume(last), []
    for line in lines:
        new += resume.feed(line)
    new += resume.end()
    for piece in new:
        last = after(last, piece)
    return new, last


def stamps(*nanos: int) -> list[Piece]:
    return [Piece(Stamp(100 + each // 10, each % 10), f"{count}".encode()) for count, each in enumerate(nanos)]


def whole(pieces: list[Piece]) -> list[tuple[Stamp, bytes]]:
    """Lines put together again."""
    lines: list[tuple[Stamp, bytes]] = []
    goes_on = False
    for piece in pieces:
        before = lines.pop()[1] if goes_on else b""
        assert len(before) == piece.starts
        lines.append((piece.stamp, before + piece.data))
        goes_on = not piece.ends
    return lines


LONGEST = 8
texts = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")) | st.text(max_size=12).map(
    lambda text: text.replace("\n", "").encode()
)


@given(st.lists(st.integers(0, 30), max_size=40).map(sorted), st.data())
def test_cut_anywhere_nothing_is_lost_and_nothing_twice(times: list[int], data: st.DataObject) -> None:
    log = stamps(*times)
    cut = data.draw(st.integers(0, len(log)))
    first, cursor = read(log[:cut], None)
    again = log if cursor is None else [line for line in log if line.stamp.seconds >= cursor.stamp.seconds - 1]
    rest, _ = read(again, cursor)
    assert first + rest == log


@given(st.lists(st.tuples(st.integers(0, 30), texts), max_size=12), st.data())
def test_long_lines_are_cut_and_resumed_at_any_piece(lines: list[tuple[int, bytes]], data: st.DataObject) -> None:
    lines = sorted(lines, key=lambda line: line[0])
    raw = b"".join(b"1970-01-01T00:01:%02d.%09dZ %s\n" % (40 + at // 10, at % 10, text) for at, text in lines)
    pieces, found, at = Pieces(LONGEST), list[Piece](), 0
    while at < len(raw):
        size = data.draw(st.integers(1, len(raw)))
        found += pieces.feed(raw[at : at + size])
        at += size
    assert pieces.end() == []
    assert all(len(piece.data) <= LONGEST + 40 for piece in found)
    expected = [(Stamp(100 + at // 10, at % 10), text) for at, text in lines]
    assert whole(found) == expected
    cut = data.draw(st.integers(0, len(found)))
    first, cursor = read(found[:cut], None)
    since = 0 if cursor is None else cursor.stamp.seconds - 1
    again = Pieces(LONGEST).feed(raw)
    rest, _ = read([piece for piece in again if piece.stamp.seconds >= since], cursor)
    assert whole(first + rest) == expected


def test_a_line_that_was_left_within_and_is_gone_ends_there() -> None:
    cursor = Cursor(Stamp(100, 5), 3, part=7)
    later = Piece(Stamp(109, 0), b"x")
    assert read([later], cursor)[0] == [Piece(Stamp(100, 5), b"", 7), later]


def test_an_endless_line_comes_in_pieces_and_holds_no_more_than_one() -> None:
    pieces, found = Pieces(LONGEST), list[Piece]()
    for chunk in (b"2026-11-29T12:00:00Z ", *[b"x" * 1000] * 100):
        found += pieces.feed(chunk)
    assert {len(piece.data) for piece in found} == {LONGEST}
    assert [piece.starts for piece in found] == list(range(0, LONGEST * len(found), LONGEST))
    (last,) = pieces.feed(b"\n")
    assert last.ends
    assert sum(len(piece.data) for piece in [*found, last]) == 100_000


def test_an_endless_line_of_a_kubelet_is_left_out() -> None:
    pieces = Pieces(LONGEST)
    assert pieces.feed(b"x" * 1000) == []
    assert pieces.feed(b"y" * 1000 + b"\n2026-11-29T12:00:00Z a\n") == [Piece(Stamp(1795953600, 0), b"a")]


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
    for each in (placed(cursor, 77), Cursor(cursor.stamp, 3, 65536), placed(Cursor(cursor.stamp, 3, 9), 12)):
        assert read_cursor(str(each)) == each
    assert str(placed(Cursor(cursor.stamp, 3, 9), 12)) == "1795953600.000000120/3+9@12"
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
    at_once, pieces = LineSplitter(), LineSplitter()
    expected, found, at = at_once.feed(data), [], 0
    for size in sizes:
        found += pieces.feed(data[at : at + size])
        at += size
    found += pieces.feed(data[at:])
    assert (found, pieces.rest()) == (expected, at_once.rest())


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def test_a_buffer_gives_bounded_batches_and_then_its_end(loop: asyncio.AbstractEventLoop) -> None:
    told: list[int] = []
    buffer = Buffer(None, Room(loop), lambda: told.append(1))
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


def test_an_end_says_what_is_missing_once_all_was_fetched(loop: asyncio.AbstractEventLoop) -> None:
    buffer = Buffer(None, Room(loop), lambda: None)
    buffer.add([(RawLine(b"x" * BATCH_BYTES), Cursor(Stamp(count, 0), 1)) for count in range(2)])
    buffer.close("the node is lost")
    ends = [buffer.fetch() for _ in range(2)]
    assert [(end.last, end.missing) for end in ends] == [(False, None), (True, "the node is lost")]


def test_who_runs_ahead_waits_for_its_own_lines_to_be_fetched(loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> None:
        buffer = Buffer(None, Room(loop), lambda: None)
        buffer.add([(RawLine(b"x" * BATCH_BYTES), Cursor(Stamp(count, 0), 1)) for count in range(4)])
        waiting = loop.create_task(buffer.for_more())
        await asyncio.sleep(0)
        assert not waiting.done()
        buffer.fetch()
        await waiting

    loop.run_until_complete(story())


def test_all_together_hold_no_more_than_there_is_room(loop: asyncio.AbstractEventLoop) -> None:
    async def story() -> None:
        room = Room(loop, size=100)
        buffers = [Buffer(None, room, lambda: None) for _ in range(10)]

        async def write(buffer: Buffer) -> None:
            for count in range(5):
                await buffer.for_more()
                assert room.held < 100
                buffer.add([(RawLine(b"x" * 30), Cursor(Stamp(count, 0), 1))])

        writers = [loop.create_task(write(buffer)) for buffer in buffers]
        lines = 0
        while not all(writer.done() for writer in writers) or room.held:
            lines += sum(len(buffer.fetch().lines) for buffer in buffers)
            await asyncio.sleep(0)
        assert lines == 50
        await asyncio.gather(*writers)

    loop.run_until_complete(story())


def test_big_lines_make_small_batches(loop: asyncio.AbstractEventLoop) -> None:
    buffer = Buffer(None, Room(loop), lambda: None)
    buffer.add([(RawLine(b"x" * 200_000), Cursor(Stamp(count, 0), 1)) for count in range(3)])
    assert [len(buffer.fetch().lines) for _ in range(2)] == [2, 1]
