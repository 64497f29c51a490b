"""Hosts agree on the time that their database told them, whatever becomes of their own clocks."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.store.clock import DatabaseClock
from tests.unit.examples import AT, later


class Host:
    """One whose own clock is wrong, and is set now and then."""

    def __init__(self) -> None:
        self.passed, self.wrong_by = 0.0, 0.0
        self.clock = DatabaseClock(self.own, lambda: self.passed)

    def own(self) -> datetime:
        return later(0) + timedelta(seconds=self.passed + self.wrong_by)


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(-3600, 3600), st.booleans()), max_size=20))
def test_it_is_right_from_the_first_answer_on(steps: list[tuple[float, float, bool]]) -> None:
    host, asked = Host(), False
    for seconds, wrong_by, asks in steps:
        host.passed += seconds
        host.wrong_by = wrong_by
        if asks:
            host.clock.hear(AT + timedelta(seconds=host.passed))
            asked = True
        true = AT + timedelta(seconds=host.passed)
        if asked:
            assert abs(host.clock() - true) <= timedelta(milliseconds=1)
        else:
            assert host.clock() == host.own()
