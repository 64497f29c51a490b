"""What a subscription tells: from a snapshot or a cursor on, everything once, with bookmarks when it is quiet."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.cursors import feed_cursor, row_cursor
from starforge.api.feed import stream
from starforge.api.feed.hub import Hub
from starforge.api.feed.stream import Telling, follow, resume_position
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.following import Following
from starforge.api.transport.groups import Groups
from starforge.api.transport.openings import Run
from starforge.api.transport.source import Cut, Joint, Source, Step
from starforge.domain.errors import CursorExpired, CursorInvalid, StarForgeError
from starforge.domain.names import JobId
from starforge.domain.queries import FeedRow
from tests.unit.api.feeding import LIMIT_S, Blockable, Ears, Table

pytestmark = pytest.mark.anyio
Told = tuple[str, int]


class Teller:
    """Tells of every row, or of even ones alone."""

    jobs: frozenset[JobId] | None = None

    def __init__(self, *, coalesce: bool = False, even: bool = False) -> None:
        self.coalesce = coalesce
        self.even = even

    def wants(self, one: FeedRow) -> bool:
        return True

    async def snapshot(self, position: int) -> Sequence[Telling[Told]]:
        return [Telling(("snapshot", position), Step(position))]

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[Told]]:
        wanted = [one for one in rows if not self.even or one.position % 2 == 0]
        return [Telling(("row", one.position), Step(one.position)) for one in wanted]

    def bookmark(self, position: int) -> Told:
        return ("bookmark", position)

    def forget(self) -> None: ...


class World:
    """A hub over a table, where rows happen when a test says so."""

    def __init__(self, head: int = 0, *, floor: int = 0) -> None:
        self.table = Table(head, floor)
        self.hub = Hub(self.table, Ears().hear)
        self.groups = Groups()
        self.hub.position = head

    async def happens(self, count: int) -> None:
        """`count` rows more, which the hub hears of."""
        self.table.head += count
        await self.hub._heard(None)


class Reader(Blockable):
    """One subscriber, with everything it was sent and did not look at yet."""

    def __init__(self, world: World, teller: Teller, after: int | None, how: Run | None = None) -> None:
        self._payloads: asyncio.Queue[Told | RequestRefused | None] = asyncio.Queue()
        super().__init__()
        self.fell_behind_at: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []

        async def run(source: Source) -> AsyncGenerator[dict[str, Any], None]:
            try:
                async with aclosing(follow(world.hub, teller, source, after)) as changes:
                    async for change in changes:
                        yield {"data": change}
            except StarForgeError as error:
                raise RequestRefused.because_of(error) from error

        group = world.groups.group((type(teller), teller.coalesce, teller.even), how or run)
        self.following = Following(self, how or run, str(after), group)
        self.begun = asyncio.create_task(self._guarded(self.following.begin()))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RequestRefused as refused:
            self.ended(refused)

    def next(self, payload: bytes) -> None:
        kind, position = json.loads(payload)["data"]
        self._payloads.put_nowait((kind, position))

    def fell_behind(self, joint: Joint) -> None:
        self.fell_behind_at.append(joint.position)
        self._tasks.append(asyncio.create_task(self._guarded(self.following.catch_up(joint))))

    def ended(self, refused: RequestRefused | None) -> None:
        self._payloads.put_nowait(refused)

    async def read(self, count: int) -> list[Told]:
        return [await self._read_one() for _ in range(count)]

    async def _read_one(self) -> Told:
        async with asyncio.timeout(LIMIT_S):
            got = await self._payloads.get()
        if isinstance(got, RequestRefused):
            raise got
        assert got is not None
        return got


@asynccontextmanager
async def following(world: World, after: int | None = None, teller: Teller | None = None) -> AsyncIterator[Reader]:
    """A subscriber that has joined those that come later."""
    reader = Reader(world, teller or Teller(), after)
    try:
        await reader.begun
        yield reader
    finally:
        reader.following.end()
        await asyncio.sleep(0)


async def test_a_snapshot_then_a_bookmark_then_what_comes() -> None:
    world = World(5)
    async with following(world) as reader:
        assert await reader.read(2) == [("snapshot", 5), ("bookmark", 5)]
        await world.happens(2)
        assert await reader.read(2) == [("row", 6), ("row", 7)]


async def test_a_snapshot_comes_first_and_then_what_happens() -> None:
    world = World(5)
    async with following(world) as reader:
        assert await reader.read(2) == [("snapshot", 5), ("bookmark", 5)]
        await world.happens(1)
        assert await reader.read(1) == [("row", 6)]


async def test_a_cursor_is_resumed_from_the_table_and_then_live() -> None:
    world = World(5)
    async with following(world, after=2) as reader:
        assert await reader.read(4) == [("row", 3), ("row", 4), ("row", 5), ("bookmark", 5)]
        await world.happens(1)
        assert await reader.read(1) == [("row", 6)]


async def test_a_cursor_ahead_of_this_gateway_is_waited_for() -> None:
    world = World(5)
    async with following(world, after=7) as reader:
        assert await reader.read(1) == [("bookmark", 7)]
        await world.happens(3)
        assert await reader.read(1) == [("row", 8)]


async def test_it_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BOOKMARK_S", 0.01)
    world = World(5)
    async with following(world) as reader:
        assert await reader.read(2) == [("snapshot", 5), ("bookmark", 5)]
        assert await reader.read(2) == [("bookmark", 5), ("bookmark", 5)]


async def test_rows_that_are_not_told_do_not_hold_bookmarks_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BOOKMARK_S", 0.01)
    world = World(6)
    async with following(world, teller=Teller(even=True)) as reader:
        await reader.read(2)
        await world.happens(1)
        while (await reader.read(1)) != [("bookmark", 7)]:
            pass


async def test_many_share_one_source_and_nobody_listens_after_the_end() -> None:
    world = World(5)
    async with following(world) as one, following(world, after=3) as other:
        await one.read(2)
        await other.read(3)
        assert (world.hub.listeners, len(world.groups), world.groups.members) == (1, 1, 2)
        await world.happens(1)
        assert await one.read(1) == await other.read(1) == [("row", 6)]
    assert (world.hub.listeners, len(world.groups)) == (0, 0)


async def test_a_subscriber_that_is_blocked_goes_on_from_where_it_was() -> None:
    world = World(5)
    async with following(world) as slow, following(world) as quick:
        await slow.read(2)
        await quick.read(2)
        slow.block()
        for position in (6, 7, 8):
            await world.happens(1)
            assert await quick.read(1) == [("row", position)]
        assert slow.fell_behind_at == [5]
        slow.unblock()
        assert await slow.read(4) == [("row", 6), ("row", 7), ("row", 8), ("bookmark", 8)]
        await world.happens(1)
        assert await slow.read(1) == await quick.read(1) == [("row", 9)]


async def test_rows_that_go_while_they_are_read_end_it() -> None:
    world = World(5)
    world.table.floor = 3
    async with following(world, after=1) as reader:
        with pytest.raises(RequestRefused) as refused:
            await reader.read(1)
    assert refused.value.code is ErrorCode.CURSOR_EXPIRED


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
def test_everybody_is_told_everything_once_and_in_order(data: st.DataObject) -> None:
    """Subscribers come at any cursor, are blocked for a while, and resume; the hub may lag behind the table."""

    async def run() -> None:
        head = data.draw(st.integers(0, 6))
        world = World(head)
        world.hub.position = head - data.draw(st.integers(0, head))
        readers: list[tuple[int, Reader]] = []
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["join", "happens", "hear", "block", "unblock", "wait"])):
                case "join":
                    after = data.draw(st.integers(0, world.table.head))
                    readers.append((after, Reader(world, Teller(), after)))
                case "happens":
                    world.table.head += data.draw(st.integers(1, 3))
                case "hear":
                    await world.hub._heard(None)
                case "block" | "unblock" as what if readers:
                    getattr(data.draw(st.sampled_from(readers))[1], what)()
                case _:
                    await turns(data.draw(st.integers(0, 8)))
        world.table.head += 1
        await world.hub._heard(None)
        for after, reader in readers:
            reader.unblock()
            told: list[int] = []
            while len(told) < world.table.head - after:
                kind, position = (await reader.read(1))[0]
                told += [position] if kind == "row" else []
            assert told == list(range(after + 1, world.table.head + 1))
        for _, reader in readers:
            reader.following.end()
        await turns(4)
        assert world.hub.listeners == len(world.groups) == 0

    asyncio.run(run())


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_subscriber_that_is_blocked_while_the_others_leave_comes_back() -> None:
    world = World(5)
    async with following(world) as slow:
        async with following(world) as quick:
            await slow.read(2)
            await quick.read(2)
            slow.block()
            await world.happens(1)
            assert await quick.read(1) == [("row", 6)]
        assert len(world.groups) == 1
        slow.unblock()
        assert await slow.read(2) == [("row", 6), ("bookmark", 6)]
        await world.happens(1)
        assert await slow.read(1) == [("row", 7)]


async def test_leaving_twice_takes_nothing_from_those_who_came_later() -> None:
    world = World(5)
    async with following(world) as one:
        await one.read(2)
    async with following(world) as other:
        one.following.end()
        await other.read(2)
        await world.happens(1)
        assert await other.read(1) == [("row", 6)]
        assert (len(world.groups), world.groups.members) == (1, 1)


async def test_an_opening_is_whole_or_none() -> None:
    world = World(5)
    outages = [True]

    async def run(source: Source) -> AsyncGenerator[dict[str, Any], None]:
        async with aclosing(follow(world.hub, Teller(), source, None)) as changes:
            async for change in changes:
                cut = {"data": change, "errors": [{"message": "", "extensions": {"code": "UNAVAILABLE"}}]}
                yield Cut(cut) if outages and not source.live else {"data": change}

    async def begin() -> Reader:
        reader = Reader(world, Teller(), None, run)
        await reader.begun
        return reader

    first = await begin()
    with pytest.raises(RequestRefused) as refused:
        await first.read(1)
    assert refused.value.code is ErrorCode.UNAVAILABLE
    outages.clear()
    second = await begin()
    assert await second.read(2) == [("snapshot", 5), ("bookmark", 5)]
    for reader in (first, second):
        reader.following.end()
    await turns(2)
