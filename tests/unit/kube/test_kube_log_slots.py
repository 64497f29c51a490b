"""Who reads when not all logs can be read at once."""

import asyncio
import resource

import pytest

from starforge.adapters.kube.watch.logs.slots import QUIET_S, TURN_S, Slots, slots_there_are


class Reading:
    """Stands for an answer that was last heard of at a time."""

    def __init__(self, heard_at: float) -> None:
        self.heard_at = heard_at
        self.stopped = self.closed = False

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.closed = True


def test_the_quietest_give_up_their_turn_to_as_many_as_wait() -> None:
    async def story() -> None:
        slots = Slots(3)
        answers = [Reading(0.0), Reading(5.0), Reading(TURN_S)]
        end = asyncio.Event()

        async def read(number: int) -> None:
            async with slots.turn():
                with slots.reading(f"log {number}", answers[number]):  # type: ignore[arg-type]
                    await end.wait()

        async def another() -> None:
            async with slots.turn():
                pass

        readers = [asyncio.create_task(read(number)) for number in range(3)]
        await asyncio.sleep(0)
        slots.sweep(now=TURN_S + 6)
        assert [answer.stopped for answer in answers] == [False] * 3, "nobody waits"
        waiting = asyncio.create_task(another())
        await asyncio.sleep(0)
        slots.sweep(now=TURN_S + 6)
        assert [answer.stopped for answer in answers] == [True, False, False]
        end.set()
        await asyncio.gather(*readers, waiting)
        assert all(answer.closed for answer in answers)

    asyncio.run(story())


def test_a_log_that_is_silent_for_long_is_asked_for_again() -> None:
    slots = Slots(1)
    silent, heard = Reading(0.0), Reading(1.0)
    with slots.reading("a", silent), slots.reading("b", heard):  # type: ignore[arg-type]
        slots.sweep(now=QUIET_S)
        assert (silent.stopped, heard.stopped) == (True, False)
        slots.stop("b")
        slots.stop("nobody")
        assert heard.stopped


def test_there_are_never_more_slots_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    limits = (1024, 4096)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda _which, pair: given.append(pair))
    assert slots_there_are(10) == 10
    assert given == []
    assert slots_there_are(2000) == 2000
    assert slots_there_are(20_000) == 3896
    limits = (1024, resource.RLIM_INFINITY)
    assert slots_there_are(20_000) == 20_000
    assert given == [(2200, 4096), (4096, 4096), (20_200, resource.RLIM_INFINITY)]
