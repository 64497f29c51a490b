"""What a subscription tells: from a snapshot or a cursor on, everything once, with bookmarks when it is quiet."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.cursors import feed_cursor, read_feed_cursor, row_cursor
from starforge.api.feed import listener as listening
from starforge.api.feed import stream
from starforge.api.feed.hub import Hub
from starforge.api.feed.listener import Listener
from starforge.api.feed.stream import follow, resume_position
from starforge.domain.errors import CursorExpired, CursorInvalid, SlowConsumer
from starforge.domain.queries import FeedRow
from tests.unit.api.feeding import LIMIT_S, Ears, Table

pytestmark = pytest.mark.anyio
Told = tuple[str, int]


class Teller:
    """Tells of every row, or of even ones alone."""

    def __init__(self, *, coalesce: bool = False, even: bool = False) -> None:
        self.coalesce = coalesce
        self.even = even

    def wants(self, one: FeedRow) -> bool:
        return True

    async def snapshot(self, position: int) -> Sequence[Told]:
        return [("snapshot", position)]

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Told]:
        return [("row", one.position) for one in rows if not self.even or one.position % 2 == 0]

    def bookmark(self, position: int) -> Told:
        return ("bookmark", position)


class WatchedHub(Hub):
    """Says when somebody listens."""

    def __init__(self, table: Table) -> None:
        super().__init__(table, Ears().hear)
        self.joined = asyncio.Event()

    def listen(self, listener: Listener) -> Callable[[], None]:
        self.joined.set()
        return super().listen(listener)


class World:
    """A hub over a table, where rows happen when a test says so."""

    def __init__(self, head: int = 0, *, floor: int = 0) -> None:
        self.table = Table(head, floor)
        self.hub = WatchedHub(self.table)
        self.hub.position = head

    async def happens(self, count: int) -> None:
        """`count` rows more, which the hub hears of."""
        self.table.head += count
        await self.hub._heard(None)


@asynccontextmanager
async def following(world: World, after: int | None = None, teller: Teller | None = None) -> AsyncIterator["Reader"]:
    async with aclosing(follow(world.hub, teller or Teller(), after)) as steps:
        yield Reader(steps)


class Reader:
    def __init__(self, steps: AsyncIterator[Told]) -> None:
        self._steps = steps

    async def next(self, count: int) -> list[Told]:
        async with asyncio.timeout(LIMIT_S):
            return [await anext(self._steps) for _ in range(count)]


async def test_a_snapshot_then_a_bookmark_then_what_comes() -> None:
    world = World(5)
    async with following(world) as reader:
        assert await reader.next(2) == [("snapshot", 5), ("bookmark", 5)]
        await world.happens(2)
        assert await reader.next(2) == [("row", 6), ("row", 7)]


async def test_what_happens_while_a_snapshot_is_read_is_told_after_it() -> None:
    world = World(5)
    async with following(world) as reader:
        assert await reader.next(1) == [("snapshot", 5)]
        await world.happens(1)
        assert await reader.next(2) == [("bookmark", 5), ("row", 6)]


async def test_a_cursor_is_resumed_from_the_table_and_then_live() -> None:
    world = World(5)
    async with following(world, after=2) as reader:
        assert await reader.next(1) == [("row", 3)]
        await world.happens(1)
        assert await reader.next(4) == [("row", 4), ("row", 5), ("row", 6), ("bookmark", 6)]
        await world.happens(1)
        assert await reader.next(1) == [("row", 7)]


async def test_a_cursor_ahead_of_this_gateway_is_waited_for() -> None:
    world = World(5)
    async with following(world, after=7) as reader:
        assert await reader.next(1) == [("bookmark", 7)]
        await world.happens(3)
        assert await reader.next(1) == [("row", 8)]


async def test_it_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(5)
    async with following(world) as reader:
        await reader.next(2)
        monkeypatch.setattr(stream, "BOOKMARK_S", 0.0)
        await world.happens(1)
        assert await reader.next(1) == [("row", 6)]
        assert await reader.next(2) == [("bookmark", 6), ("bookmark", 6)]


async def test_rows_that_are_not_told_do_not_hold_bookmarks_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BOOKMARK_S", 0.0)
    world = World(6)
    async with following(world, teller=Teller(even=True)) as reader:
        await reader.next(3)
        await world.happens(1)
        assert await reader.next(1) == [("bookmark", 7)]


async def test_nobody_listens_after_the_end() -> None:
    world = World(5)
    async with following(world) as reader:
        await reader.next(2)
        waiting = asyncio.create_task(reader.next(1))
        await asyncio.sleep(0)
        assert world.hub.listeners == 1
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert world.hub.listeners == 0


@pytest.mark.parametrize("coalesce", [False, True])
async def test_a_slow_reader_is_told_where_to_resume(monkeypatch: pytest.MonkeyPatch, *, coalesce: bool) -> None:
    monkeypatch.setattr(listening, "QUEUE_MAX", 3)
    world = World(5)
    async with following(world, teller=Teller(coalesce=coalesce)) as reader:
        await reader.next(2)
        waiting = asyncio.create_task(reader.next(1))
        async with asyncio.timeout(LIMIT_S):
            await world.hub.joined.wait()
        await world.happens(1)
        assert await waiting == [("row", 6)]
        await world.happens(5)
        if coalesce:
            assert await reader.next(1) == [("row", 11)]
            return
        assert await reader.next(3) == [("row", 7), ("row", 8), ("row", 9)]
        with pytest.raises(SlowConsumer) as slow:
            await reader.next(1)
    assert read_feed_cursor(slow.value.cursor or "") == 9
    assert world.hub.listeners == 0
    async with following(world, after=9) as reader:
        assert await reader.next(2) == [("row", 10), ("row", 11)]


async def test_rows_that_go_while_they_are_read_end_it() -> None:
    world = World(5)
    async with following(world, after=1) as reader:
        world.table.floor = 3
        with pytest.raises(CursorExpired):
            await reader.next(1)


async def test_positions_of_cursors() -> None:
    hub = World(9, floor=4).hub
    assert await resume_position(hub, feed_cursor(4)) == 4
    assert await resume_position(hub, feed_cursor(9)) == 9
    with pytest.raises(CursorExpired):
        await resume_position(hub, feed_cursor(3))
    with pytest.raises(CursorInvalid, match="ahead"):
        await resume_position(hub, feed_cursor(10))
    with pytest.raises(CursorInvalid):
        await resume_position(hub, row_cursor(("a",)))


@given(st.data())
def test_from_any_cursor_on_everything_is_told_once_and_in_order(data: st.DataObject) -> None:
    head = data.draw(st.integers(0, 6))
    lag = data.draw(st.integers(0, head))
    after = data.draw(st.integers(0, head))
    more = data.draw(st.lists(st.integers(1, 3), max_size=4))
    read_before = data.draw(st.integers(0, head + 1))

    async def run() -> list[int]:
        world = World(head)
        world.hub.position = head - lag
        told: list[int] = []
        async with following(world, after=after) as reader:
            last = head + sum(more)
            there_is = max(0, head - lag - after) + 1
            for kind, position in await reader.next(min(read_before, there_is)):
                told += [position] if kind == "row" else []
            for count in more:
                await world.happens(count)
            await world.hub._heard(None)
            while len(told) < last - after:
                kind, position = (await reader.next(1))[0]
                told += [position] if kind == "row" else []
        return told

    assert asyncio.run(run()) == list(range(after + 1, head + sum(more) + 1))
