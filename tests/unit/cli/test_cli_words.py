"""How numbers and times are shown, and what outside text can do to a terminal."""

from datetime import UTC, datetime

import pytest

from starforge.cli import words


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, ""),
        (0.9, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (725, "12 min 5 s"),
        (12000, "3 h 20 min"),
        (187200, "2 d 4 h"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert words.duration(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 2**20, "5.0 MiB"), (3 * 2**30, "3.0 GiB")],
)
def test_sizes(count: int, shown: str) -> None:
    assert words.size(count) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.96112, "0.9611"), (3.0, "3"), (1058.52, "1058.5"), (1e-7, "1e-07"), (-2.5, "-2.5000"), (2e9, "2e+09")],
)
def test_metrics(value: float, shown: str) -> None:
    assert words.metric({"name": "m", "value": value, "nonFinite": None}) == f"m {shown}"


def test_a_metric_that_is_no_finite_number() -> None:
    assert words.metric({"name": "loss", "value": None, "nonFinite": "NAN"}) == "loss NaN"


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        ({"step": 3, "total": 20, "fraction": 0.15}, "3/20  15%"),
        ({"step": 3, "total": None, "fraction": None}, "step 3"),
        ({"step": None, "total": None, "fraction": None}, ""),
        ({"step": 0, "total": 0, "fraction": None}, "0/0"),
    ],
)
def test_steps(progress: dict[str, object], shown: str) -> None:
    assert words.steps(progress) == shown


def test_seconds_between_never_goes_below_zero() -> None:
    now = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert words.seconds_between("2026-03-01T09:29:00.000Z", None, now) == 60
    assert words.seconds_between("2026-03-01T09:31:00.000Z", None, now) == 0
    assert words.seconds_between(None, None, now) is None


def test_outside_text_can_do_nothing_to_a_terminal() -> None:
    dirty = {"message": "a\x1b[2Jb\nc\u202ed", "list": ["\x07", 1, None]}
    assert words.clean(dirty) == {"message": "a\\x1b[2Jb\nc\\u202ed", "list": ["\\x07", 1, None]}
