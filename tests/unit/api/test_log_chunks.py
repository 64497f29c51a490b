"""Chunks of a log: every line once, in order, and none too large."""

from hypothesis import given
from hypothesis import strategies as st

from starforge.api.logs.subscriptions import CHUNK_BYTES, split
from starforge.api.logs.types import ANSI
from starforge.domain.logs import LINE_MAX_BYTES, LogLine

SIZES = st.lists(st.integers(0, LINE_MAX_BYTES), max_size=60)


@given(SIZES, st.sampled_from("aé"))
def test_every_line_is_in_one_chunk(sizes: list[int], letter: str) -> None:
    lines = [LogLine(number, letter * (size // len(letter.encode()))) for number, size in enumerate(sizes, start=1)]
    chunks = split(lines)
    assert [line for chunk in chunks for line in chunk] == lines
    assert all(chunks)
    assert all(sum(len(line.text.encode()) for line in chunk) <= CHUNK_BYTES for chunk in chunks)


def test_chunks_are_filled() -> None:
    lines = [LogLine(number, "x" * (CHUNK_BYTES // 4)) for number in range(1, 9)]
    assert [len(chunk) for chunk in split(lines)] == [4, 4]


def test_a_line_that_is_longer_than_a_chunk_is_one() -> None:
    lines = [LogLine(1, "a"), LogLine(2, "x" * (CHUNK_BYTES + 1)), LogLine(3, "b")]
    assert [len(chunk) for chunk in split(lines)] == [1, 1, 1]


def test_escape_sequences_are_left_out() -> None:
    assert ANSI.sub("", "\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain \x1bM") == "red plain "
