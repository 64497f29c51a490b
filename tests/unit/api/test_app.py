"""How a gateway ends."""

import asyncio

import pytest

from starforge.api import app
from starforge.api.app import end

pytestmark = pytest.mark.anyio


async def test_a_task_that_loses_a_cancellation_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "CANCEL_AGAIN_S", 0.0)
    lost: list[int] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                lost.append(1)
                if len(lost) == 3:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await end(task)
    assert task.cancelled()
    assert len(lost) == 3


async def test_a_task_that_has_ended_is_left_alone() -> None:
    task = asyncio.create_task(asyncio.sleep(0))
    await task
    await end(task)
    assert not task.cancelled()
