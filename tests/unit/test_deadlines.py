"""Clocks: started once, stopped in time, over when they are due."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.deadlines import (
    RUNS,
    Clock,
    ClockKind,
    Clocks,
    ClockState,
    expire,
    grace,
    new_clocks,
    next_due,
    overdue,
    start,
    stop,
)
from starforge.domain.spec import Deadlines
from tests.unit.examples import AT, later

ALL = new_clocks(Deadlines(10, 20, 30))


def of(clocks: Clocks, kind: ClockKind) -> Clock:
    return next(clock for clock in clocks if clock.kind is kind)


def test_new_clocks_stand_still_and_zero_is_off() -> None:
    assert [(clock.state, clock.limit_s) for clock in new_clocks(Deadlines(0, 5, 0))] == [
        (ClockState.OFF, None),
        (ClockState.NOT_STARTED, 5),
        (ClockState.OFF, None),
    ]
    assert next_due(ALL) is None
    assert overdue(ALL, later(1e6)) is None


def test_a_clock_is_started_once() -> None:
    clocks = start(ALL, ClockKind.QUEUE, AT)
    assert of(clocks, ClockKind.QUEUE).due_at == later(10)
    assert start(clocks, ClockKind.QUEUE, later(5)) == clocks
    assert start(stop(clocks, ClockKind, later(5)), ClockKind.QUEUE, later(6)) == stop(clocks, ClockKind, later(5))
    off = new_clocks(Deadlines(0, 0, 0))
    assert start(off, ClockKind.QUEUE, AT) == off


def test_a_stopped_clock_is_never_over() -> None:
    clocks = stop(start(ALL, ClockKind.QUEUE, AT), [ClockKind.QUEUE], later(5))
    clock = of(clocks, ClockKind.QUEUE)
    assert (clock.state, clock.ended_at, clock.due_at) == (ClockState.STOPPED, later(5), None)
    assert overdue(clocks, later(100)) is None
    assert of(clocks, ClockKind.ACTIVE).state is ClockState.NOT_STARTED


@given(st.integers(0, 40))
def test_a_clock_is_over_from_its_due_time_on(seconds: int) -> None:
    clocks = start(ALL, ClockKind.PRE_RUNNING, AT)
    over = overdue(clocks, later(seconds))
    assert (over is not None) == (seconds >= 20)


def test_the_first_that_ran_out_is_told() -> None:
    clocks = start(start(ALL, ClockKind.ACTIVE, AT), ClockKind.QUEUE, later(15))
    over = overdue(clocks, later(60))
    assert over is not None
    assert over.kind is ClockKind.QUEUE
    assert next_due(clocks) == later(25)


@pytest.mark.parametrize(("until", "state", "due"), [(5, ClockState.RUNNING, 10), (50, ClockState.GRACE, 50)])
def test_a_grace_only_ever_gives_time(until: int, state: ClockState, due: int) -> None:
    clocks = grace(start(ALL, ClockKind.QUEUE, AT), [ClockKind.QUEUE], later(until))
    assert (of(clocks, ClockKind.QUEUE).state, of(clocks, ClockKind.QUEUE).due_at) == (state, later(due))


def test_a_clock_in_grace_runs_and_can_be_over_and_stopped() -> None:
    clocks = grace(start(ALL, ClockKind.QUEUE, AT), [ClockKind.QUEUE], later(50))
    assert overdue(clocks, later(49)) is None
    assert overdue(clocks, later(50)) is not None
    assert of(stop(clocks, ClockKind, later(20)), ClockKind.QUEUE).state is ClockState.STOPPED
    assert of(expire(clocks, ClockKind.QUEUE, later(51)), ClockKind.QUEUE).ended_at == later(51)


def test_what_does_not_run_gets_no_grace() -> None:
    assert grace(ALL, [ClockKind.QUEUE], later(50)) == ALL


KINDS = st.sampled_from(ClockKind)


def stepped(clocks: Clocks, what: str, kind: ClockKind, seconds: int) -> Clocks:
    at = later(seconds)
    if what == "start":
        return start(clocks, kind, at)
    if what == "stop":
        return stop(clocks, [kind], at)
    if what == "grace":
        return grace(clocks, [kind], later(seconds + 60))
    return expire(clocks, kind, at) if of(clocks, kind).state in RUNS else clocks


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(["start", "stop", "expire", "grace"]), KINDS), max_size=8))
def test_only_clocks_that_run_are_ever_due(steps: list[tuple[str, ClockKind]]) -> None:
    clocks = new_clocks(Deadlines(10, 0, 30))
    for number, (what, kind) in enumerate(steps):
        clocks = stepped(clocks, what, kind, number * 7)
        running = [clock for clock in clocks if clock.state in RUNS]
        assert next_due(clocks) == min((clock.due_at for clock in running if clock.due_at), default=None)
        over = overdue(clocks, later(1e6))
        assert over in running if running else over is None
        assert of(clocks, ClockKind.PRE_RUNNING).state is ClockState.OFF
