"""Good answers, kept for a short time and asked for once, however many wait for one."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Remembered(Generic[Answer]):
    """At most `most` answers, each for `keep_s` seconds of `clock` from when it was asked for. Errors are not kept."""

    def __init__(self, *, keep_s: float, most: int, clock: Callable[[], float]) -> None:
        self._keep_s, self._most, self._clock = keep_s, most, clock
        self._kept: OrderedDict[Hashable, tuple[float, Answer]] = OrderedDict()
        self._asking: dict[Hashable, asyncio.Task[Answer]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer for a key; whatever `ask` raises, for everybody who waits for it."""
        until, answer = self._kept.get(key, (0.0, None))
        if answer is not None and self._clock() < until:
            return answer
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, ask))
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)  # one who goes away does not end it for the others

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        until = self._clock() + self._keep_s
        answer = await ask()
        self._kept[key] = until, answer
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return answer

    def _asked(self, key: Hashable, done: asyncio.Task[Answer]) -> None:
        del self._asking[key]
        if not done.cancelled():
            done.exception()  # seen, even if all who waited are gone
