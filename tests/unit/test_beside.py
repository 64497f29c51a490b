"""Calls beside each other: one that hangs or fails takes nothing from the others."""

import logging
import threading

import pytest

from starforge.domain.beside import beside


def test_all_that_end_are_told() -> None:
    assert beside({"a": lambda: 1, "b": lambda: 2}, within_s=30) == {"a": 1, "b": 2}


def test_one_that_hangs_holds_up_nobody() -> None:
    over = threading.Event()
    hung = beside({"hangs": lambda: over.wait(30), "well": lambda: True}, within_s=0.2)
    over.set()
    assert hung == {"well": True}


def test_a_defect_is_logged_and_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "starforge"):
        assert beside({"broken": lambda: 1 // 0, "well": lambda: 1}, within_s=30) == {"well": 1}
    assert "broken failed" in caplog.text


def test_nothing_to_do_is_nothing() -> None:
    assert beside({}, within_s=30) == {}
