"""How many logs are read at once: when more want to than may, those that are quiet give up their turn."""

import asyncio
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from starforge.adapters.kube.watch.logs.answer import Answer

SLOTS = 20_000
# What else a process opens.
_OTHER_FILES = 200
TURN_S = 10.0
# A log that says nothing for so long is asked for again, in case that nobody is at the other end any more.
QUIET_S = 1800.0


def slots_there_are(most: int = SLOTS) -> int:
    """As many as files may be open, of which the process is given as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + _OTHER_FILES if hard == resource.RLIM_INFINITY else min(most + _OTHER_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(1, min(most, max(soft, wanted) - _OTHER_FILES))


class Slots:
    """Used on the loop alone."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._waiting = 0
        self._open: dict[str, Answer] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a slot and has it for the block."""
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()

    @contextmanager
    def reading(self, name: str, answer: Answer) -> Iterator[None]:
        """The answer can be ended by its name within the block, and is closed after it."""
        self._open[name] = answer
        try:
            yield
        finally:
            del self._open[name]
            answer.close()

    def stop(self, name: str) -> None:
        """Ends what is being read under this name."""
        if name in self._open:
            self._open[name].stop()

    def sweep(self, now: float) -> None:
        """Ends what is quiet for too long; with others waiting, that is for a turn."""
        quiet = sorted((answer.heard_at, name) for name, answer in self._open.items())
        for index, (heard_at, name) in enumerate(quiet):
            silence = now - heard_at
            if silence >= QUIET_S or (index < self._waiting and silence >= TURN_S):
                self._open[name].stop()
