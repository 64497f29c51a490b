"""Frames are whole lines that a pipe takes in one write."""

import select

from hypothesis import given
from hypothesis import strategies as st

from starforge.runner.frames import MAX_FRAME_BYTES, frames, opening

AT = 1_764_417_600.123456


@given(st.binary(max_size=20_000))
def test_every_frame_is_one_line_below_the_limit(data: bytes) -> None:
    made = list(frames(data, AT, 0))
    assert all(len(frame) <= MAX_FRAME_BYTES and frame.find(b"\n") == len(frame) - 1 for frame in made)
    assert sum(frame.split(b" ", 4)[3] == b"." for frame in made) == data.count(b"\n")


@given(st.binary(max_size=20_000), st.integers(0, 10**12))
def test_each_frame_has_the_place_where_the_one_before_it_ended(data: bytes, start: int) -> None:
    place = start
    for frame in frames(data, AT, start):
        _, _, told, mark, piece = frame[:-1].split(b" ", 4)
        end = place + len(piece) + (mark == b".")
        assert told == b"%d-%d" % (place, end)
        place = end
    assert place == start + len(data)


def test_the_form_of_a_frame() -> None:
    assert opening(AT, 7) == b"::starforge-out 1764417600.123456 7-7 ^ \n"
    assert list(frames(b"one\n\ntwo", AT, 7)) == [
        b"::starforge-out 1764417600.123456 7-11 . one\n",
        b"::starforge-out 1764417600.123456 11-12 . \n",
        b"::starforge-out 1764417600.123456 12-15 + two\n",
    ]


def test_no_output_makes_no_frame() -> None:
    assert list(frames(b"", AT, 0)) == []


def test_a_full_frame_is_atomic_on_a_pipe() -> None:
    assert MAX_FRAME_BYTES - 10 < max(len(frame) for frame in frames(b"x" * 50_000, AT, 0)) <= MAX_FRAME_BYTES
    assert MAX_FRAME_BYTES <= select.PIPE_BUF
