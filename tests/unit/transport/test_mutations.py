import asyncio

import pytest

from starforge.api.transport.mutations import RunningMutations


def test_cancelling_the_wait_leaves_the_work_running_and_drain_waits_for_it() -> None:
    done: list[str] = []

    async def scenario() -> None:
        running, gate = RunningMutations(), asyncio.Event()

        async def work() -> None:
            await gate.wait()
            done.append("work")

        waiting = asyncio.create_task(running.run(work()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        drained = asyncio.create_task(running.drain())
        await asyncio.sleep(0)
        assert not drained.done()
        gate.set()
        await drained

    asyncio.run(scenario())
    assert done == ["work"]


def test_a_failure_reaches_who_waits() -> None:
    async def work() -> None:
        raise ValueError("broken")

    async def scenario() -> None:
        running = RunningMutations()
        with pytest.raises(ValueError, match="broken"):
            await running.run(work())
        await running.drain()

    asyncio.run(scenario())
