"""Rests within large answers, so that the event loop is never held for long.

graphql-core completes all items of a list, and everything that became ready together, in one go. Here whatever may be
one of many looks at the clock first, and lets the loop turn once that go has taken GO_S, whosever work it was. What is
loaded meanwhile is still asked for together (`Together`), as an answer that rests must not take more questions.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from strawberry.dataloader import DataLoader

GO_S = 0.010
"""What one step takes comes on top."""
AT_ONCE = 64
TURNS_OF_A_LOADER = 3
"""What was wanted in one turn, strawberry's loader asks for so many turns later."""
FEW = 8
"""Items of a list that are completed without a look at the clock between them."""

Key = TypeVar("Key")
T = TypeVar("T")


class Pace:
    """How long one turn of a loop has taken so far, and who waits for the next."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.perf_counter) -> None:
        self._loop, self._clock = loop, clock
        self._since: float | None = None
        self._is_called = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def is_due(self) -> bool:
        """Whether it is time for the loop to turn."""
        if self._since is None:
            self._since = self._clock()
            self._call()
            return False
        return self._clock() - self._since > GO_S

    async def turn(self) -> None:
        """Returns in a later turn, after those who came before."""
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
        self._call()
        await waiter

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._turned)

    def _turned(self) -> None:
        """Only some go on at a time: to wake thousands takes long by itself."""
        self._since, self._is_called = None, False
        if self._waiting:
            self._call()  # before those who go on, so that their turn is measured from its beginning
        for _ in range(min(len(self._waiting), AT_ONCE)):
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)


_paces: WeakKeyDictionary[asyncio.AbstractEventLoop, Pace] = WeakKeyDictionary()


def pace_of(loop: asyncio.AbstractEventLoop) -> Pace:
    if loop not in _paces:
        _paces[loop] = Pace(loop)
    return _paces[loop]


class Rests:
    """Of one operation: `resting` is how many of its parts rest now, `taken` how often any has."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.resting = 0
        self.taken = 0
        self._over = asyncio.Event()

    @property
    def are_due(self) -> bool:
        return self._pace.is_due()

    async def rest(self) -> None:
        """Returns when there is time for more."""
        self.resting += 1
        self.taken += 1
        try:
            await self._pace.turn()
            while self._pace.is_due():
                await self._pace.turn()
        finally:
            self.resting -= 1
            if not self.resting:
                self._over.set()

    async def over(self) -> None:
        """Returns when no part rests."""
        while self.resting:
            self._over.clear()
            await self._over.wait()

    async def before(self, result: Awaitable[T]) -> T:
        """`result`, begun and handed on only when there is time for more."""
        if self.are_due:
            try:
                await self.rest()
            except BaseException:
                getattr(result, "close", lambda: None)()  # as it is never going to be awaited
                raise
        resolved = await result
        if self.are_due:
            await self.rest()
        return resolved

    async def between(self, items: Sequence[T]) -> AsyncIterator[T]:
        for item in items:
            if self.are_due:
                await self.rest()
            yield item


current: ContextVar[Rests | None] = ContextVar("rests", default=None)
"""Of the operation that runs here."""


class PacedLoader(DataLoader[Key, T]):
    """Many get what they wait for in the same turn, and each goes on with it when there is time for more."""

    def load(self, key: Key) -> Awaitable[T]:
        return _handed(super().load(key))


async def _handed(result: Awaitable[T]) -> T:
    # Shielded, as others may wait for the same: strawberry never asks for a batch whose first waiter was cancelled.
    found = await asyncio.shield(result)
    rests = current.get()
    if rests is not None and rests.are_due:
        await rests.rest()
    return found


class Together(Generic[Key]):
    """Asks for many keys at once; of an operation that has rested, when none of its parts rests and wants more."""

    def __init__(self, ask: Callable[[Sequence[Key]], Awaitable[Mapping[Any, Any]]]) -> None:
        self._ask = ask
        self._keys: list[Key] = []
        self._asking: asyncio.Task[Mapping[Any, Any]] | None = None

    async def __call__(self, keys: Sequence[Key]) -> Mapping[Any, Any]:
        rests = current.get()
        if self._asking is None:
            if rests is None or not rests.taken:
                return await self._ask(keys)
            self._asking = asyncio.create_task(self._ask_after(rests))
            self._asking.add_done_callback(_heard)
        self._keys += keys
        return await asyncio.shield(self._asking)

    async def _ask_after(self, rests: Rests) -> Mapping[Any, Any]:
        gathered = -1
        while rests.resting or len(self._keys) > gathered:
            gathered = len(self._keys)
            await rests.over()
            for _ in range(TURNS_OF_A_LOADER):
                await asyncio.sleep(0)
        keys, self._keys, self._asking = self._keys, [], None
        return await self._ask(keys)


def _heard(task: asyncio.Task[Any]) -> None:
    """An error is told to all who wait; there may be none any more."""
    if not task.cancelled():
        task.exception()
