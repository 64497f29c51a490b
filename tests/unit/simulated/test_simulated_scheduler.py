"""Who gets which node of the simulated cluster, and when."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.simulated.plan import Outcome
from starforge.adapters.simulated.record import Record, machines
from starforge.adapters.simulated.scheduler import place
from starforge.adapters.simulated.timeline import timeline
from starforge.adapters.simulated.world import World
from starforge.domain.spec import PoolDraft
from tests.unit.simulated.lives import LATER, SMALL, START, record_of, spec_of

BEFORE = START - timedelta(days=1)


def wants(gpus: int, *, number: int, machine_count: int = 1, at: datetime = START, priority: int = 0) -> Record:
    spec = spec_of(Outcome.FOREVER, pools=(PoolDraft("train", "h200", machine_count, gpus),))
    return record_of(replace(spec, priority=priority), number=number, at=at)


def test_a_full_node_makes_the_next_one_wait_until_pods_are_gone() -> None:
    world = World(nodes=SMALL)
    (first,) = place(world, [wants(8, number=1)], after=BEFORE, until=LATER)
    second = wants(8, number=2, at=START + timedelta(minutes=1))
    assert place(world, [first, second], after=BEFORE, until=LATER) == []
    first = replace(first, deleted_at=LATER)
    gone = timeline(world, first).gone_at
    assert gone is not None
    (second,) = place(world, [first, second], after=BEFORE, until=gone)
    assert second.placement is not None
    assert second.placement.at == gone


def test_a_run_gets_all_machines_or_none() -> None:
    world = World(nodes=SMALL)
    assert place(world, [wants(8, number=1, machine_count=2)], after=BEFORE, until=LATER) == []


def test_a_small_run_may_pass_a_large_one() -> None:
    world = World(nodes=SMALL)
    runs = [
        wants(6, number=1),
        wants(8, number=2, at=START + timedelta(minutes=1)),
        wants(2, number=3, at=START + timedelta(minutes=2)),
    ]
    assert [one.run for one in place(world, runs, after=BEFORE, until=LATER)] == [runs[0].run, runs[2].run]


def test_a_higher_priority_goes_first() -> None:
    world = World(nodes=SMALL)
    first = replace(wants(8, number=1), deleted_at=LATER)
    (first,) = place(world, [first], after=BEFORE, until=LATER - timedelta(hours=1))
    low = wants(8, number=2, at=START + timedelta(minutes=1))
    high = wants(8, number=3, at=START + timedelta(minutes=5), priority=10)
    (winner,) = place(world, [first, low, high], after=BEFORE, until=LATER + timedelta(minutes=1))
    assert winner.run == high.run


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 600), st.integers(1, 600)), min_size=1, max_size=12))
def test_no_node_is_ever_promised_twice(wishes: list[tuple[int, int, int]]) -> None:
    world = World(nodes=SMALL)
    runs = []
    for number, (gpus, start, life) in enumerate(wishes):
        record = wants(gpus, number=number, at=START + timedelta(seconds=start))
        runs.append(replace(record, deleted_at=record.launched_at + timedelta(seconds=life)))
    found = place(world, runs, after=BEFORE, until=LATER)
    for moment in [one.placement.at for one in found if one.placement]:
        assert sum(_gpus_at(world, one, moment) for one in found) <= 8
    for one in found:
        assert one.placement is not None
        assert timeline(world, one).pods_at <= one.placement.at


def _gpus_at(world: World, record: Record, at: datetime) -> int:
    gone = timeline(world, record).gone_at
    holds = record.placement is not None and record.placement.at <= at and (gone is None or at < gone)
    return sum(machine.gpus for machine in machines(record.spec)) if holds else 0
