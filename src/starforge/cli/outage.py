"""How long a client waits for a gateway that it lost, and what it says meanwhile."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from starforge.domain.errors import FeedError, StarForgeError


@dataclass(frozen=True)
class Patience:
    """Seconds. The gateway sends something every 12 s, so that silence means that it is gone."""

    silence: float = 40
    first_wait: float = 0.5
    longest_wait: float = 15
    give_up: float = 600

    def waits(self) -> Iterator[float]:
        """Backoff with jitter, so that many clients do not come back at once."""
        wait = self.first_wait
        while True:
            yield wait * random.uniform(0.5, 1)  # noqa: S311 - no secret
            wait = min(wait * 2, self.longest_wait)


class Outage:
    """The time in which one subscription is cut off. `note` is told when it begins and when it is over."""

    def __init__(self, patience: Patience, note: Callable[[str], None]) -> None:
        self._patience = patience
        self._note = note
        self._since: float | None = None
        self._waits = patience.waits()

    def over(self) -> None:
        if self._since is not None:
            self._note("The connection is back.")
        self._since, self._waits = None, self._patience.waits()

    async def wait(self, cut: StarForgeError) -> None:
        """Returns when to try again; raises the cut if that is of no use, or was tried for long enough."""
        now = time.monotonic()
        worth_trying = cut.retryable or isinstance(cut, FeedError)
        if not worth_trying or now - (self._since or now) > self._patience.give_up:
            raise cut
        if self._since is None:
            self._note(f"{cut.message} Trying again …")
        self._since = self._since or now
        await asyncio.sleep(max(next(self._waits), cut.retry_after_s or 0))
