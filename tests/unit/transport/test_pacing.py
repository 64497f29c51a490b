"""Large answers let the event loop turn, and ask no more questions for it."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count

import pytest
import strawberry

from starforge.api.transport import pacing
from starforge.api.transport.compiled import CompiledExecutor
from starforge.api.transport.pacing import GO_S, Pace, PacedLoader, Rests, Together

MANY = 1_000
PER_GO = 20
"""Looks at the clock that fit between two rests, as it goes on by a part of GO_S with each."""


class World:
    """What is asked of the database, and how often the loop turned meanwhile."""

    def __init__(self) -> None:
        self.questions: list[Sequence[int]] = []
        self.completed = 0
        self.between_turns = [0]
        self.names: PacedLoader[int, str] = PacedLoader(self._load)
        self._together: Together[int] = Together(self._ask)

    async def _ask(self, keys: Sequence[int]) -> Mapping[int, str]:
        self.questions.append(keys)
        return {key: f"n{key}" for key in keys}

    async def _load(self, keys: list[int]) -> list[str]:
        found = await self._together(keys)
        return [found[key] for key in keys]

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.between_turns.append(self.completed)


class Busy(Pace):
    """It is never time for more."""

    def is_due(self) -> bool:
        return True


@strawberry.type
class Item:
    number: int

    @strawberry.field
    def plain(self, info: strawberry.Info) -> int:
        info.context.completed += 1
        return self.number

    @strawberry.field
    async def name(self, info: strawberry.Info) -> str:
        found: str = await info.context.names.load(self.number)
        info.context.completed += 1
        return found


@strawberry.type
class Query:
    @strawberry.field
    def items(self, first: int) -> list[Item]:
        return [Item(number=number) for number in range(first)]


SCHEMA = strawberry.Schema(Query, execution_context_class=CompiledExecutor)


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a step each time it is looked at."""
    ticks = count()
    monkeypatch.setattr(pacing, "pace_of", lambda loop: Pace(loop, clock=lambda: next(ticks) * GO_S / PER_GO))
    monkeypatch.setattr("starforge.api.transport.compiled.executor.pace_of", pacing.pace_of)


async def executed(query: str, world: World) -> object:
    watching = asyncio.create_task(world.watch())
    result = await SCHEMA.execute(query, context_value=world)
    watching.cancel()
    assert result.errors is None
    return result.data


def most_at_once(world: World) -> int:
    return max(after - before for before, after in zip(world.between_turns, world.between_turns[1:], strict=False))


async def plain() -> World:
    world = World()
    data = await executed(f"{{ items(first: {MANY}) {{ plain }} }}", world)
    assert data == {"items": [{"plain": number} for number in range(MANY)]}
    return world


async def named() -> World:
    world = World()
    data = await executed(f"{{ items(first: {MANY}) {{ name }} }}", world)
    assert data == {"items": [{"name": f"n{number}"} for number in range(MANY)]}
    return world


def test_a_long_list_is_completed_with_rests() -> None:
    world = asyncio.run(plain())
    assert world.completed == MANY
    assert most_at_once(world) <= PER_GO + 2


def test_what_became_ready_together_is_completed_with_rests() -> None:
    world = asyncio.run(named())
    assert world.completed == MANY
    assert most_at_once(world) <= PER_GO + 2


def test_rests_take_no_more_questions() -> None:
    world = asyncio.run(named())
    assert sum(map(len, world.questions)) == MANY
    assert len(world.questions) == 1


def test_a_short_list_is_completed_in_one_go() -> None:
    async def short() -> World:
        world = World()
        assert await executed("{ items(first: 5) { plain } }", world) == {"items": [{"plain": one} for one in range(5)]}
        return world

    assert len([one for one in asyncio.run(short()).between_turns if 0 < one < 5]) == 0


def test_a_result_whose_turn_never_comes_is_closed() -> None:
    async def work() -> None:
        raise AssertionError("never begun")

    async def main() -> None:
        rests = Rests(Busy(asyncio.get_running_loop()))
        waiting = asyncio.create_task(rests.before(work()))
        await asyncio.sleep(0)
        assert rests.resting == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert rests.resting == 0

    asyncio.run(main())


def test_an_error_reaches_all_who_asked_together() -> None:
    async def fails(_: Sequence[int]) -> Mapping[int, str]:
        raise ConnectionError("away")

    async def main() -> list[object]:
        rests = Rests(Pace(asyncio.get_running_loop()))
        pacing.current.set(rests)
        together: Together[int] = Together(fails)
        await rests.rest()
        asking = [asyncio.create_task(together([number])) for number in range(3)]
        return await asyncio.gather(*asking, return_exceptions=True)

    assert [str(one) for one in asyncio.run(main())] == ["away"] * 3
