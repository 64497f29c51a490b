"""What simulated code prints, read as the platform reads it."""

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.simulated.driver import frames
from starforge.adapters.simulated.plan import Outcome
from starforge.domain.observation import RawLine
from starforge.domain.unframing import FrameParser
from starforge.domain.wire import Exit, ProgressSaid, Started
from tests.unit.simulated.lives import LATER, NONCE, START, life_of, said, spec_of


def test_the_runner_tells_start_and_exit() -> None:
    messages = said(life_of(spec_of(Outcome.SUCCEED)), LATER).messages
    assert isinstance(messages[0], Started)
    assert isinstance(messages[-1], Exit)
    assert (messages[-1].code, messages[-1].signal) == (0, None)


def test_training_gets_better() -> None:
    reports = [one for one in said(life_of(spec_of(Outcome.SUCCEED)), LATER).messages if isinstance(one, ProgressSaid)]
    first, last = dict(reports[0].metrics), dict(reports[-1].metrics)
    assert [one.step for one in reports] == list(range(1, len(reports) + 1))
    assert reports[-1].step == reports[-1].total
    assert last["loss"] < first["loss"] / 4
    assert last["accuracy"] > 0.85 > first["accuracy"]


def test_now_and_then_a_loss_is_not_a_number() -> None:
    lives = (said(life_of(spec_of(Outcome.SUCCEED), number=number), LATER).messages for number in range(20))
    losses = [dict(one.metrics)["loss"] for life in lives for one in life if isinstance(one, ProgressSaid)]
    assert 0 < sum(map(isnan, losses)) < len(losses) / 20


def test_failing_code_ends_with_a_traceback_and_its_code() -> None:
    parsed = said(life_of(spec_of(Outcome.FAIL)), LATER)
    texts = [line.text for line in parsed.lines]
    assert "Traceback (most recent call last):" in texts
    assert texts[-1].startswith("FloatingPointError: ")
    assert isinstance(parsed.messages[-1], Exit)
    assert parsed.messages[-1].code == 3


def test_code_that_ran_out_of_memory_says_nothing_more() -> None:
    parsed = said(life_of(spec_of(Outcome.OOM)), LATER)
    assert parsed.messages
    assert not any(isinstance(message, Exit) for message in parsed.messages)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEED, Outcome.FAIL])
def test_people_see_no_lines_of_the_wire(outcome: Outcome) -> None:
    parsed = said(life_of(spec_of(outcome)), LATER)
    assert parsed.lines
    assert not parsed.container
    assert not any("::starforge" in line.text for line in parsed.lines)


@given(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=9000))
def test_a_line_of_any_length_survives_its_frames(text: str) -> None:
    made = list(frames(START, text.encode()))
    assert all(len(frame) + 1 <= 4000 for frame in made)
    (line,) = FrameParser(trusts=lambda nonce: nonce == NONCE).feed([RawLine(frame) for frame in made]).lines
    assert (line.text, line.at) == (text, START)
