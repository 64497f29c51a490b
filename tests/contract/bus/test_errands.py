"""Errands: done in order by a thread, waited for no longer than asked, and refused when the thread hangs."""

import queue
import threading
from functools import partial

import pytest

from starforge.adapters.bus.errands import Errands

LIMIT_S = 60.0


def test_errands_are_done_in_order() -> None:
    errands, done = Errands("test"), list[int]()
    for number in range(50):
        errands.run(partial(done.append, number), wait_s=LIMIT_S)
    assert done == list(range(50))


def test_what_an_errand_raises_is_raised_and_the_next_one_is_done() -> None:
    errands, done = Errands("test"), list[str]()
    with pytest.raises(ZeroDivisionError):
        errands.run(lambda: done.append(str(1 / 0)), wait_s=LIMIT_S)
    errands.run(lambda: done.append("next"), wait_s=LIMIT_S)
    assert done == ["next"]


def test_a_thread_that_hangs_is_given_no_more_than_so_much() -> None:
    errands, hangs, release = Errands("test"), threading.Event(), threading.Event()
    done: queue.Queue[int] = queue.Queue()

    def hang() -> None:
        hangs.set()
        assert release.wait(LIMIT_S)

    with pytest.raises(TimeoutError):
        errands.run(hang, wait_s=0)
    assert hangs.wait(LIMIT_S)
    for number in range(16):
        with pytest.raises(TimeoutError, match=r"^$"):
            errands.run(partial(done.put, number), wait_s=0)
    with pytest.raises(TimeoutError, match="hang"):
        errands.run(partial(done.put, 16), wait_s=LIMIT_S)
    release.set()
    assert [done.get(timeout=LIMIT_S) for _ in range(16)] == list(range(16))
