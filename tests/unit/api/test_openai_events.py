"""Event streams on their way, and the tokens that are counted in them."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.playgrounds.openai.events import HELD_MAX, Events
from starforge.api.playgrounds.openai.tokens import Tokens, tokens_in

END = st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"])
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=30)
EVENT = st.tuples(LINE.map(lambda text: b"data: " + text.encode()), END).map(b"".join)
USAGE = st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 10**6), "completion_tokens": st.integers(0, 10**6)},
    optional={"details": st.dictionaries(st.text(max_size=5), st.integers())},
)


@given(st.lists(EVENT, max_size=8), st.lists(st.integers(0, 400), max_size=12), st.booleans())
def test_nothing_is_lost_and_no_event_is_given_out_in_parts(events: list[bytes], cuts: list[int], half: bool) -> None:
    text = b"".join(events) + (b"data: half" if half else b"")
    at = sorted({0, *(min(cut, len(text)) for cut in cuts), len(text)})
    reader, out = Events(), b""
    ends = {0, *(len(b"".join(events[: number + 1])) for number in range(len(events)))}
    for start, end in itertools.pairwise(at):
        out += reader.feed(text[start:end])
        assert reader.whole
        assert len(out) in ends or out.endswith((b"\r\r", b"\n\n"))
        assert text.startswith(out)
    assert out + reader.rest() == text


def test_an_event_that_is_too_long_to_hold_is_passed_on_in_parts() -> None:
    reader = Events()
    assert reader.feed(b"data: " + b"x" * HELD_MAX) != b""
    assert not reader.whole
    assert reader.broken(b"data: {}\n\n") == b"\n\ndata: {}\n\n"
    assert reader.feed(b"x\n\n") == b"x\n\n"
    assert reader.whole


def test_half_an_event_is_left_out_before_the_last() -> None:
    reader = Events()
    assert reader.feed(b"data: 1\n\ndata: ha") == b"data: 1\n\n"
    assert reader.broken(b"data: {}\n\n") == b"data: {}\n\n"


@given(USAGE, st.text(), st.booleans())
def test_tokens_are_found_wherever_they_stand(usage: dict[str, int], text: str, last: bool) -> None:
    rest = {"choices": [{"text": text + '"usage": {"prompt_tokens": 9}'}], "id": "x"}
    whole = {**rest, "usage": usage} if last else {"usage": usage, **rest}
    expected = Tokens(usage["prompt_tokens"], usage["completion_tokens"])
    assert tokens_in(json.dumps(whole).encode()) == expected
    assert tokens_in(b"data: " + json.dumps(whole, ensure_ascii=False).encode(errors="replace") + b"\n\n") == expected


@pytest.mark.parametrize(
    "text",
    [b"", b'"usage"', b'{"usage": null}', b'{"usage": {', b'"usage": {"prompt', b'{"usage":{"a":' + b"[" * 9000],
)
def test_where_there_are_none(text: bytes) -> None:
    assert tokens_in(text) is None


@pytest.mark.parametrize("count", ["-1", '"7"', "true", "1.5", "1e400", "99999999999999999999", "null", "[]"])
def test_a_count_that_is_none_is_not_counted(count: str) -> None:
    assert tokens_in(f'{{"usage": {{"prompt_tokens": {count}, "completion_tokens": 3}}}}'.encode()) == Tokens(0, 3)


@given(st.binary())
def test_anything_may_come(text: bytes) -> None:
    reader = Events()
    assert reader.feed(text) + reader.rest() == text
    tokens_in(text)
