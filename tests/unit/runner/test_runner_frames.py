"""Frames are whole lines that a pipe takes in one write."""

import select

from hypothesis import given
from hypothesis import strategies as st

from starforge.runner.frames import MAX_FRAME_BYTES, frames

AT = 1_764_417_600.123456


@given(st.binary(max_size=20_000))
def test_every_frame_is_one_line_below_the_limit(data: bytes) -> None:
    made = list(frames(data, AT))
    assert all(len(frame) <= MAX_FRAME_BYTES and frame.find(b"\n") == len(frame) - 1 for frame in made)
    assert sum(frame.split(b" ", 3)[2] == b"." for frame in made) == data.count(b"\n")


def test_the_form_of_a_frame() -> None:
    assert list(frames(b"one\n\ntwo", AT)) == [
        b"::starforge-out 1764417600.123456 . one\n",
        b"::starforge-out 1764417600.123456 . \n",
        b"::starforge-out 1764417600.123456 + two\n",
    ]


def test_no_output_makes_no_frame() -> None:
    assert list(frames(b"", AT)) == []


def test_a_full_frame_is_atomic_on_a_pipe() -> None:
    assert max(len(frame) for frame in frames(b"x" * 50_000, AT)) == MAX_FRAME_BYTES <= select.PIPE_BUF
