"""Frames back to lines, and messages out of them; the frames are made by the runner's own function."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.framing import read_frame, write_frame
from starforge.domain.logs import LINE_MAX_BYTES, LineMark, LogLine, cut_at, text_of
from starforge.domain.observation import RawLine
from starforge.domain.text_lines import TextLine
from starforge.domain.unframing import FrameParser, Missing, Parsed
from starforge.domain.wire import Exit, Message, ProgressSaid, Refused, RefusedWhy, Started, read_message, split_wire
from starforge.runner.frames import MAX_FRAME_BYTES, frames, opening

NONCE = "n0nce"
AT = datetime(2026, 11, 29, 12, 0, 0, 123456, UTC)
output = st.lists(
    st.binary(max_size=60) | st.sampled_from([b"\n", b"a\nb", b"::starforge-out 1.000000 . x"]), max_size=12
)


def placed(*pieces: bytes, at: datetime = AT, start: int = 0) -> list[RawLine]:
    """All that the runner writes for some output, from its beginning at `start` on."""
    made, place = [opening(at.timestamp(), start)], start
    for piece in pieces:
        made += frames(piece, at.timestamp(), place)
        place += len(piece)
    assert all(len(frame) <= MAX_FRAME_BYTES and frame.endswith(b"\n") and frame.count(b"\n") == 1 for frame in made)
    return [RawLine(frame[:-1]) for frame in made]


def framed(*pieces: bytes, at: datetime = AT) -> list[RawLine]:
    """Output in frames without places, which can be put together at will."""
    found = [read_frame(line.data)[1] for line in placed(*pieces, at=at)[1:]]
    return [RawLine(write_frame(replace(frame, span=None))) for frame in found if frame]


def parse(lines: list[RawLine]) -> Parsed:
    parser = FrameParser(trusts=NONCE.__eq__)
    fed, ended = parser.feed(lines), parser.end()
    assert ended.missing == ()
    return Parsed(fed.lines + ended.lines, fed.container + ended.container, fed.messages + ended.messages, fed.missing)


def message(**fields: object) -> Message | None:
    return read_message(json.dumps(fields), trusts=NONCE.__eq__, at=AT)


def wire(**fields: object) -> bytes:
    return b"::starforge:: " + json.dumps(fields).encode() + b"\n"


@given(output)
def test_lines_come_back_however_they_were_read(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    for raw in (framed(*pieces), placed(*pieces, start=100)):
        parsed = parse(raw)
        assert [line.text for line in parsed.lines] == [
            text.decode(errors="replace").replace("\0", "\ufffd") for text in expected
        ]
        assert all(line.at == AT for line in parsed.lines)
        assert (parsed.container, parsed.missing) == ((), ())


@given(st.lists(output, max_size=4), st.integers(0, 40))
def test_resumes_at_any_line(batches: list[list[bytes]], cut: int) -> None:
    raw = placed(*(piece for pieces in batches for piece in [*pieces, b"."]))
    raw = [each for line in raw for each in (line, RawLine(b"the head's own"))]
    first = FrameParser(trusts=NONCE.__eq__)
    before = first.feed(raw[:cut])
    second = FrameParser(trusts=NONCE.__eq__, carry=first.carry)
    after, end = second.feed(raw[cut:]), second.end()
    whole = parse(raw)
    assert before.lines + after.lines + end.lines == whole.lines
    assert before.container + after.container == whole.container


@given(st.integers(1, 3 * MAX_FRAME_BYTES))
def test_long_lines_are_several_frames(size: int) -> None:
    text = "é" * (size // 2) + "x" * (size % 2)
    assert parse(framed(f"{text}\n".encode())).lines == (TextLine(text, AT),)


def test_time_of_a_line_is_that_of_its_first_piece() -> None:
    later = datetime(2026, 11, 29, 12, 0, 9, tzinfo=UTC)
    parsed = parse([*framed(b"half, "), *framed(b"whole\n", at=later)])
    assert parsed.lines == (TextLine("half, whole", AT),)


def test_a_line_beyond_the_limit_is_cut_between_characters_and_goes_on_in_the_next() -> None:
    text = "x" + "é" * LINE_MAX_BYTES
    *cut, last, following = parse(framed(f"{text}\nnext\n".encode())).lines
    assert [len(line.text.encode()) for line in cut] == [LINE_MAX_BYTES - 1, LINE_MAX_BYTES]
    assert {line.marks for line in cut} == {(LineMark.CUT,)}
    assert (last.marks, following) == ((), TextLine("next", AT))
    assert "".join(line.text for line in [*cut, last]) == text


@pytest.mark.parametrize("size", [LINE_MAX_BYTES - 1, LINE_MAX_BYTES, LINE_MAX_BYTES + 1, 10_000_000])
def test_a_line_of_any_length_is_kept_whole(size: int) -> None:
    data = b"ab" * (size // 2) + b"\x1b" * (size % 2)
    for parsed in (parse(placed(data + b"\n")), parse([RawLine(data)])):
        lines = parsed.lines or parsed.container
        assert len(lines) == -(-size // LINE_MAX_BYTES)
        assert text_of(map(numbered, lines)) == data + b"\n"


def numbered(line: TextLine) -> LogLine:
    return LogLine(1, line.text, line.at, line.marks)


@given(st.binary(max_size=40), st.lists(st.integers(0, 12), max_size=40))
def test_a_line_is_cut_anywhere_without_halving_a_character(data: bytes, sizes: list[int]) -> None:
    held, pieces = data, []
    for longest in (4 + size for size in sizes):
        if len(held) <= longest:
            break
        at = cut_at(held[:longest], longest)
        assert longest - 3 <= at <= longest
        pieces.append(held[:at])
        held = held[at:]
    whole = b"".join([*pieces, held])
    assert whole == data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    assert "".join(piece.decode() for piece in [*pieces, held]) == text


def test_what_is_held_of_an_endless_line_is_bounded() -> None:
    parser = FrameParser(trusts=NONCE.__eq__)
    told = parser.feed(placed(b"x" * 10 * LINE_MAX_BYTES)).lines
    assert parser.carry is not None
    assert len(parser.carry) < 100_000
    parser = FrameParser(trusts=NONCE.__eq__, carry=parser.carry)
    rest = parser.feed(framed(b"y\n")).lines
    assert {each.marks for each in told} == {(LineMark.CUT,)}
    assert "".join(each.text for each in [*told, *rest]) == "x" * 10 * LINE_MAX_BYTES + "y"


@given(output, st.integers(0, 60), st.integers(1, 60))
def test_frames_that_are_lost_are_told_with_their_bytes(pieces: list[bytes], start: int, count: int) -> None:
    raw = placed(*pieces, b"the end\n")
    lost = raw[1:-1][start : start + count]
    kept = [line for line in raw if line not in lost]
    gone = sum(map(size_of, lost))
    parsed = parse(kept)
    assert sum(missing.bytes or 0 for missing in parsed.missing) == gone
    assert all(missing.after <= len(parsed.lines) for missing in parsed.missing)
    assert parsed.lines[-1].text.endswith("the end")


def size_of(line: RawLine) -> int:
    """Bytes of output in a frame."""
    frame = read_frame(line.data)[1]
    assert frame is not None
    assert frame.span is not None
    return frame.span[1] - frame.span[0]


def test_a_gap_ends_the_line_before_it() -> None:
    first, half, rest = placed(b"one\n", b"two ", b"three\n")[1:]
    parsed = parse([placed()[0], first, half, *placed(b"four\n", start=100)[1:], rest])
    assert [line.text for line in parsed.lines] == ["one", "two ", "four"]
    assert parsed.missing == (Missing(2, 100 - len(b"one\ntwo ")),)


def test_what_comes_twice_is_taken_once() -> None:
    raw = placed(b"one\n", b"", b"\n", b"two ", b"three\n")
    assert parse([*raw, *raw]) == parse([*raw[:3], *raw]) == parse(raw)
    assert [line.text for line in parse(raw).lines] == ["one", "", "two three"]


def test_what_was_removed_from_a_line_is_not_missing() -> None:
    first, second = placed(b"password\n", b"next\n")[1:]
    parsed = parse([placed()[0], RawLine(first.data.replace(b"password", b"***")), second])
    assert ([line.text for line in parsed.lines], parsed.missing) == (["***", "next"], ())


def test_an_output_whose_beginning_is_missing_says_so() -> None:
    raw = placed(b"one\n", b"two\n")
    parsed = parse(raw[2:])
    assert ([line.text for line in parsed.lines], parsed.missing) == (["two"], (Missing(0, None),))


def test_bytes_that_are_no_text_are_marked() -> None:
    parsed = parse(framed(b"a\xff\xfeb\nc\0d\n\xef\xbf\xbd\n"))
    assert parsed.lines == (
        TextLine("a\ufffd\ufffdb", AT, (LineMark.INVALID_UTF8,)),
        TextLine("c\ufffdd", AT, (LineMark.INVALID_UTF8,)),
        TextLine("\ufffd", AT),
    )


def test_lines_of_the_container_itself_are_kept_apart() -> None:
    own = RawLine(b"ray start --head", AT)
    parsed = parse([own, *framed(b"hello "), RawLine(b"", AT), own, *framed(b"world\n")])
    assert parsed.lines == (TextLine("hello world", AT),)
    assert [line.text for line in parsed.container] == ["ray start --head", "", "ray start --head"]


def test_a_frame_behind_an_unfinished_line_of_the_container() -> None:
    (frame,) = framed(b"hello\n")
    parsed = parse([RawLine(b"Waiting..." + frame.data, AT)])
    assert parsed.container == (TextLine("Waiting...", AT),)
    assert parsed.lines == (TextLine("hello", AT),)


@pytest.mark.parametrize(
    "data", [b"::starforge-out x . a", b"::starforge-out 1.0 . a", b"::starforge-out 1.000000 ? a", b"::starforge-out "]
)
def test_what_is_almost_a_frame_is_a_line_of_the_container(data: bytes) -> None:
    assert parse([RawLine(data, AT)]).container == (TextLine(data.decode(), AT),)


def test_messages_are_taken_out_of_the_log() -> None:
    parsed = parse(
        framed(
            wire(type="started", at=1.5, nonce=NONCE),
            b"epoch 1\n",
            wire(type="progress", step=1, total=9, metrics={"loss": 0.5}),
            wire(type="exit", code=143, signal=15, at=2, nonce=NONCE),
            wire(type="exit", code=137, signal=9, oom=True, at=3, nonce=NONCE),
        )
    )
    assert [line.text for line in parsed.lines] == ["epoch 1"]
    assert parsed.messages == (
        Started(datetime.fromtimestamp(1.5, UTC)),
        ProgressSaid(1, 9, (("loss", 0.5),), AT),
        Exit(143, 15, datetime.fromtimestamp(2, UTC)),
        Exit(137, 9, datetime.fromtimestamp(3, UTC), out_of_memory=True),
    )


@pytest.mark.parametrize(
    "prefix",
    [
        "(pid=123) ",
        "(Trainer pid=123) ",
        "(Trainer pid=1, ip=10.0.0.7) ",
        "(Trainer(rank=0) pid=1, ip=10.0.0.7) ",
        "\x1b[36m(train_one pid=88)\x1b[0m ",
        "  ",
    ],
)
def test_prefixes_of_ray_do_not_hide_a_message(prefix: str) -> None:
    text = prefix + wire(type="progress", step=3).decode().strip() + "\x1b[0m"
    assert split_wire(TextLine(text, AT), trusts=NONCE.__eq__) == (None, ProgressSaid(3, None, (), AT))


def test_text_before_a_message_that_lacked_a_newline_stays_in_the_log() -> None:
    parsed = parse(framed(b"100%|####| 9/9", wire(type="progress", step=9)))
    assert parsed.lines == (TextLine("100%|####| 9/9", AT),)
    assert parsed.messages == (ProgressSaid(9, None, (), AT),)


@pytest.mark.parametrize("kind", ["started", "exit", "refused"])
@pytest.mark.parametrize("nonce", [None, "", "other", 7])
def test_the_runners_messages_count_only_with_the_nonce(kind: str, nonce: object) -> None:
    fields = {"type": kind, "at": 1, "code": 0, "signal": None, "why": "claimed", "message": "x", "nonce": nonce}
    parsed = parse(framed(wire(**fields)))
    assert parsed.messages == ()
    assert [line.text for line in parsed.lines] == [wire(**fields).decode().strip()]
    assert message(**{**fields, "nonce": NONCE}) is not None


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "{}",
        "[" * 100_000,
        '{"type":"progress","step":"1"}',
        '{"type":"progress","step":true}',
        '{"type":"progress","step":-1}',
        '{"type":"progress","step":1e300}',
        '{"type":"progress","step":1,"metrics":[1]}',
        '{"type":"progress","step":1,"metrics":{"a":"high"}}',
        '{"type":"progress","step":1,"metrics":{"a":true}}',
        '{"type":"progress","step":1,"metrics":{"a":1' + "0" * 400 + "}}",
        '{"type":"progress","step":1,"metrics":{"a\\u0000":1}}',
        '{"type":"progress","step":1,"metrics":{"":1}}',
        '{"type":"nothing","nonce":"n0nce"}',
        '{"type":"exit","nonce":"n0nce","code":0}',
        '{"type":"exit","nonce":"n0nce","code":0,"signal":null,"at":1e99}',
        '{"type":"exit","nonce":"n0nce","code":0,"signal":null,"at":"NaN"}',
        '{"type":"refused","nonce":"n0nce","why":"tired","message":"x"}',
    ],
)
def test_malformed_messages_are_lines_of_the_log(body: str) -> None:
    line = TextLine("::starforge:: " + body, AT)
    assert split_wire(line, trusts=NONCE.__eq__) == (line, None)


@given(st.text() | st.dictionaries(st.text(), st.none() | st.floats() | st.text()).map(lambda d: json.dumps(d)[1:]))
def test_no_text_breaks_the_reader(body: str) -> None:
    line = TextLine("::starforge:: {" + body, AT)
    before, found = split_wire(line, trusts=NONCE.__eq__)
    assert (before is line) == (found is None)


def test_numbers_that_are_not_finite_are_kept() -> None:
    for written in ('"NaN"', "NaN"):
        said = read_message(
            f'{{"type":"progress","step":1,"metrics":{{"loss":{written}}}}}', trusts=NONCE.__eq__, at=AT
        )
        assert isinstance(said, ProgressSaid)
        assert math.isnan(said.metrics[0][1])
    said = message(type="progress", step=1, metrics={"a": "Infinity", "b": "-Infinity"})
    assert said == ProgressSaid(1, None, (("a", math.inf), ("b", -math.inf)), AT)


def test_progress_without_a_step() -> None:
    assert message(type="progress", metrics={"a": 1}) == ProgressSaid(None, None, (("a", 1.0),), AT)


def test_refused() -> None:
    said = message(type="refused", why="corrupt", message="a.py has another content", nonce=NONCE)
    assert said == Refused(RefusedWhy.CORRUPT, "a.py has another content")


def test_a_cut_line_is_never_a_message() -> None:
    fields = {"type": "progress", "step": 1, "x": "y" * LINE_MAX_BYTES}
    behind = b"z" * LINE_MAX_BYTES + wire(type="progress", step=2)
    parsed = parse(framed(wire(**fields), behind))
    assert parsed.messages == ()
    assert len(parsed.lines) == 4


def test_rays_own_driver_log_has_no_frames() -> None:
    parser = FrameParser(trusts=NONCE.__eq__)
    parsed = parser.feed_unframed([RawLine(b"hello"), RawLine(wire(type="progress", step=1).strip())])
    assert parsed == Parsed((TextLine("hello", None),), (), (ProgressSaid(1, None, ()),))
