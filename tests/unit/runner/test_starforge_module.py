"""What `import starforge` gives to user code."""

import math
import threading
from datetime import UTC, datetime

import pytest

from starforge.domain.observation import RawLine
from starforge.domain.unframing import FrameParser
from starforge.domain.wire import Message, ProgressSaid
from starforge.runner.starforge_module import progress

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Scalar:
    """As of numpy or torch."""

    def __float__(self) -> float:
        return 0.25

    def __int__(self) -> int:
        return 7


def messages(text: str) -> tuple[Message, ...]:
    parsed = FrameParser(trusts="n".__eq__).feed_unframed(RawLine(line.encode(), AT) for line in text.splitlines())
    assert parsed.lines == ()
    return parsed.messages


def test_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    progress(3, 10, loss=0.5, accuracy=Scalar(), count=2)
    progress(4)
    progress(loss=1)
    assert messages(capsys.readouterr().out) == (
        ProgressSaid(3, 10, (("loss", 0.5), ("accuracy", 0.25), ("count", 2.0)), AT),
        ProgressSaid(4, None, (), AT),
        ProgressSaid(None, None, (("loss", 1.0),), AT),
    )


def test_a_diverged_loss(capsys: pytest.CaptureFixture[str]) -> None:
    progress(Scalar(), loss=math.nan, high=math.inf, low=-math.inf)  # type: ignore[arg-type]
    (said,) = messages(capsys.readouterr().out)
    assert isinstance(said, ProgressSaid)
    assert said.step == 7
    assert math.isnan(said.metrics[0][1])
    assert said.metrics[1:] == (("high", math.inf), ("low", -math.inf))


def test_a_metric_that_is_no_number() -> None:
    with pytest.raises(TypeError, match="'loss' must be a number, not str"):
        progress(1, loss="low")


def test_threads_do_not_mix_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    def report() -> None:
        for step in range(50):
            progress(step, loss=1)

    threads = [threading.Thread(target=report) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(messages(capsys.readouterr().out)) == 400
