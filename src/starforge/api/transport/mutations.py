"""Mutations that nobody can cut in half."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class RunningMutations:
    """Runs mutations to their end, whoever stops waiting for them. One per process; drain it before it exits."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; cancelling the wait leaves it running."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be left to ask; whoever raised it has logged it

    async def drain(self) -> None:
        """Returns when the last one has ended."""
        while self._running:
            await asyncio.wait(self._running)
