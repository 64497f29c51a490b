"""The hub: each listener gets every row once and in order, whatever becomes of the messages."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.feed import hub as module
from starforge.api.feed.hub import READ_LIMIT, Hub
from starforge.api.feed.listener import Listener
from starforge.domain.errors import CursorExpired
from starforge.domain.queries import FeedRow
from tests.unit.api.feeding import LIMIT_S, Ears, News, Table, outage, positions, row

pytestmark = pytest.mark.anyio


def rows(*numbers: int) -> Sequence[FeedRow]:
    return [row(number) for number in numbers]


class Collector:
    """A listener that is read at once."""

    def __init__(self, hub: Hub) -> None:
        self.positions: list[int] = []
        self.leave = hub.listen(Listener(self._wants, coalesce=True))

    def _wants(self, one: FeedRow) -> bool:
        self.positions.append(one.position)
        return False


@asynccontextmanager
async def running(hub: Hub, ears: Ears) -> AsyncIterator[None]:
    """A hub that has heard everything."""
    delivering = asyncio.create_task(hub.run())
    try:
        async with asyncio.timeout(LIMIT_S):
            await ears.all_taken.wait()
        yield
    finally:
        delivering.cancel()
        await asyncio.gather(delivering, return_exceptions=True)


async def told(table: Table, *news: News | Exception, start: int = 0) -> tuple[Hub, Collector]:
    ears = Ears(*news)
    hub = Hub(table, ears.hear)
    hub.position = start
    collector = Collector(hub)
    async with running(hub, ears):
        return hub, collector


async def test_it_starts_at_the_newest_row() -> None:
    hub = Hub(Table(head=7), Ears().hear)
    await hub.start()
    assert hub.position == 7


async def test_rows_in_order_are_delivered_without_a_look_at_the_table() -> None:
    table = Table(head=3)
    _, collector = await told(table, rows(1), rows(2, 3))
    assert collector.positions == [1, 2, 3]
    assert table.reads == []


async def test_a_gap_is_read_from_the_table() -> None:
    hub, collector = await told(Table(head=5), rows(1), rows(4), rows(5))
    assert collector.positions == [1, 2, 3, 4, 5]
    assert hub.gaps_repaired == 1


async def test_a_mark_reads_the_table() -> None:
    hub, collector = await told(Table(head=2), None, None)
    assert collector.positions == [1, 2]
    assert hub.gaps_repaired == 1


async def test_what_comes_twice_or_late_is_dropped() -> None:
    _, collector = await told(Table(head=4), rows(1, 2), rows(1, 2), rows(4), rows(3), rows(2))
    assert collector.positions == [1, 2, 3, 4]


async def test_a_long_gap_is_read_in_pages() -> None:
    table = Table(head=2 * READ_LIMIT + 1)
    _, collector = await told(table, None)
    assert collector.positions == list(range(1, table.head + 1))
    assert table.reads == [0, READ_LIMIT, 2 * READ_LIMIT]


@pytest.mark.parametrize("failure", [outage(), ValueError("a defect")])
async def test_a_table_that_fails_is_read_again_at_the_next_news(failure: Exception) -> None:
    _, collector = await told(Table(head=3, outages=[failure]), rows(2), rows(3))
    assert collector.positions == [1, 2, 3]


async def test_hearing_that_fails_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESTART_S", 0)
    ears = Ears(rows(1), ValueError("a defect"), rows(2))
    hub = Hub(Table(head=2), ears.hear)
    collector = Collector(hub)
    async with running(hub, ears):
        assert collector.positions == [1, 2]
    assert ears.begun == 2


async def test_listeners_of_rows_that_were_pruned_unread_are_told() -> None:
    ears = Ears(None)
    hub = Hub(Table(head=9, floor=5), ears.hear)
    listener = Listener(lambda _: True, coalesce=False)
    hub.listen(listener)
    async with running(hub, ears):
        with pytest.raises(CursorExpired):
            await listener.take(LIMIT_S)
    assert hub.position == 9


async def test_who_left_gets_nothing() -> None:
    ears = Ears(rows(1))
    hub = Hub(Table(head=1), ears.hear)
    collector = Collector(hub)
    assert hub.listeners == 1
    collector.leave()
    async with running(hub, ears):
        assert (hub.listeners, collector.positions) == (0, [])


@given(st.data())
def test_whatever_arrives_each_listener_gets_every_row_once_and_in_order(data: st.DataObject) -> None:
    head = data.draw(st.integers(1, 12))
    batch = st.lists(st.integers(1, head), min_size=1, max_size=4).map(lambda numbers: rows(*numbers))
    news: list[News] = data.draw(st.lists(st.one_of(st.none(), batch), max_size=12))
    fails = data.draw(st.integers(0, 3))

    async def run() -> tuple[list[int], list[int]]:
        ears = Ears(*news, *[None] * (fails + 1))
        hub = Hub(Table(head=head, outages=[outage() for _ in range(fails)]), ears.hear)
        collector, listener = Collector(hub), Listener(lambda _: True, coalesce=False)
        hub.listen(listener)
        async with running(hub, ears):
            return collector.positions, positions(await listener.take(0))

    everything = list(range(1, head + 1))
    assert asyncio.run(run()) == (everything, everything)


async def test_between_gives_what_lies_between() -> None:
    hub = Hub(Table(head=5), Ears().hear)
    assert [positions(page) async for page in hub.between(1, 4)] == [[2, 3, 4]]
    assert [positions(page) async for page in hub.between(4, 4)] == []


async def test_between_pages() -> None:
    hub = Hub(Table(head=READ_LIMIT + 5), Ears().hear)
    assert [len(page) async for page in hub.between(0, READ_LIMIT + 3)] == [READ_LIMIT, 3]


async def test_between_says_when_rows_are_gone() -> None:
    hub = Hub(Table(head=9, floor=5), Ears().hear)
    with pytest.raises(CursorExpired):
        await anext(hub.between(3, 9))


async def test_the_head_is_read_after_it_was_asked_for_and_once_for_all_who_wait() -> None:
    table, gate, reads = Table(head=1), asyncio.Event(), list[int]()

    async def bounds() -> tuple[int, int]:
        found = (table.floor, table.head)
        reads.append(table.head)
        await gate.wait()
        return found

    table.bounds = bounds  # type: ignore[method-assign]
    hub = Hub(table, Ears().hear)
    first = asyncio.create_task(hub.head())
    for _ in range(3):
        await asyncio.sleep(0)
    assert reads == [1]
    table.head = 2
    later = [asyncio.create_task(hub.head()) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    assert await first == (0, 1)
    assert await asyncio.gather(*later) == [(0, 2)] * 3
    assert reads == [1, 2]
