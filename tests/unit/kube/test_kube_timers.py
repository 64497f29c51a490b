"""What is due, in order, and how long that is to wait for."""

from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.kube.watch.timers import Timers


def test_the_earliest_is_waited_for_and_nothing_slips() -> None:
    timers = Timers()
    assert timers.wait_s(10.0, 1.0) == 1.0
    timers.set("later", 10.5)
    timers.set("sooner", 10.2)
    timers.set("sooner", 99.0)
    assert round(timers.wait_s(10.0, 1.0), 6) == 0.2
    assert timers.due(10.1) == []
    assert timers.due(10.5) == ["sooner", "later"]
    assert timers.wait_s(10.5, 1.0) == 1.0
    timers.set("sooner", 11.0)
    assert timers.due(11.0) == ["sooner"]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 20))), st.integers(0, 20))
def test_it_is_as_a_table_would_have_it(pairs: list[tuple[str, int]], now: int) -> None:
    timers, table = Timers(), dict[str, int]()
    for name, at in pairs:
        timers.set(name, at)
        table.setdefault(name, at)
    told = timers.due(now)
    assert sorted(told) == sorted(name for name, at in table.items() if at <= now)
    assert [table[name] for name in told] == sorted(table[name] for name in told)
    assert sorted(timers.due(99)) == sorted(name for name, at in table.items() if at > now)
