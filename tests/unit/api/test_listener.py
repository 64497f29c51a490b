"""The mailbox of a subscription."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.feed import listener as module
from starforge.api.feed.listener import Listener
from starforge.domain.changes import Aspect
from starforge.domain.errors import CursorExpired, SlowConsumer
from starforge.domain.queries import FeedRow
from tests.unit.api.feeding import LIMIT_S, positions, row

pytestmark = pytest.mark.anyio


def everything(_: FeedRow) -> bool:
    return True


def filled(listener: Listener, *rows: FeedRow) -> Listener:
    for one in rows:
        listener.offer(one)
    return listener


async def all_of(listener: Listener) -> list[FeedRow]:
    taken: list[FeedRow] = []
    while rows := await listener.take(0):
        taken += rows
    return taken


async def test_it_keeps_what_is_wanted_in_order() -> None:
    listener = filled(Listener(lambda one: one.position != 2, coalesce=False), row(1), row(2), row(3))
    assert positions(await all_of(listener)) == [1, 3]


async def test_coalescing_keeps_the_newest_of_each_subject_with_every_aspect() -> None:
    listener = Listener(everything, coalesce=True)
    filled(listener, row(1, "a", Aspect.STATE), row(2, "b", Aspect.PODS), row(3, "a", Aspect.PROGRESS))
    taken = await all_of(listener)
    assert [(one.position, one.subject) for one in taken] == [(2, "b"), (3, "a")]
    assert taken[1].aspects == {Aspect.STATE, Aspect.PROGRESS}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.sampled_from(list(Aspect)))), max_size=40))
def test_coalesced_rows_rise_and_lose_no_aspect(told: list[tuple[str, set[Aspect]]]) -> None:
    async def run() -> list[FeedRow]:
        rows = [row(number, job, *aspects) for number, (job, aspects) in enumerate(told, start=1)]
        return await all_of(filled(Listener(everything, coalesce=True), *rows))

    taken = asyncio.run(run())
    assert positions(taken) == sorted(positions(taken))
    newest = {job: number for number, (job, _) in enumerate(told, start=1)}
    assert {one.subject: one.position for one in taken} == newest
    for one in taken:
        assert one.aspects == frozenset().union(*(aspects for job, aspects in told if job == one.subject))


async def test_it_waits_for_the_next_row() -> None:
    listener = Listener(everything, coalesce=False)
    waiting = asyncio.create_task(listener.take(LIMIT_S))
    await asyncio.sleep(0)
    listener.offer(row(7))
    assert positions(await waiting) == [7]


async def test_nothing_came() -> None:
    assert await Listener(everything, coalesce=True).take(0) == ()


async def test_too_many_rows_end_it_after_what_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUE_MAX", 3)
    listener = filled(Listener(everything, coalesce=False), *(row(number) for number in range(1, 6)))
    assert positions(await listener.take(0)) == [1, 2, 3]
    filled(listener, row(6))
    with pytest.raises(SlowConsumer, match="resume"):
        await listener.take(0)


async def test_a_subject_that_is_there_always_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUEUE_MAX", 2)
    listener = filled(Listener(everything, coalesce=True), row(1, "a"), row(2, "b"), row(3, "a"), row(4, "b"))
    assert positions(await all_of(listener)) == [3, 4]


async def test_the_first_end_counts() -> None:
    listener = filled(Listener(everything, coalesce=True), row(1))
    listener.end(CursorExpired("gone"))
    listener.end(SlowConsumer("slow"))
    filled(listener, row(2))
    assert positions(await listener.take(0)) == [1]
    with pytest.raises(CursorExpired):
        await listener.take(LIMIT_S)


async def test_one_that_waits_hears_of_the_end() -> None:
    listener = Listener(everything, coalesce=True)
    waiting = asyncio.create_task(listener.take(LIMIT_S))
    await asyncio.sleep(0)
    listener.end(CursorExpired("gone"))
    with pytest.raises(CursorExpired):
        await waiting


async def test_many_rows_come_some_at_a_time() -> None:
    listener = filled(Listener(everything, coalesce=False), *(row(number) for number in range(1, 251)))
    assert [len(await listener.take(0)) for _ in range(3)] == [100, 100, 50]
