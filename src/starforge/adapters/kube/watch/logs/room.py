"""How much all logs together may hold that the observer has not fetched yet."""

import asyncio
import threading
from collections import deque

ROOM_BYTES = 64 * 1024 * 1024
# Whoever is woken reads less than a fetch gives back, so that a few each time are enough to keep it going.
_WOKEN = 4


class Room:
    """`for_more` is awaited on the loop by logs that would read; `take` and `give_back` are called by any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, size: int = ROOM_BYTES) -> None:
        self._loop, self._size = loop, size
        self._held = 0
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def held(self) -> int:
        """Bytes that were read and not fetched."""
        return self._held

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    async def for_more(self) -> None:
        """Waits while there is no room."""
        while self._held >= self._size:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(turn)
            await turn

    def take(self, size: int) -> None:
        with self._lock:
            self._held += size

    def give_back(self, size: int) -> None:
        with self._lock:
            self._held -= size
        if self._waiting:
            self._loop.call_soon_threadsafe(self.wake)

    def wake(self, most: int = _WOKEN) -> None:
        """Lets some look again, those first that have waited longest; called on the loop."""
        for _ in range(min(most, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
