"""What playgrounds are used for through this gateway, counted here and told to the database now and then."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from starforge.api.context import Services
from starforge.api.playgrounds.openai.refusals import Refused
from starforge.domain.actions.use_playground import Use, note_use
from starforge.domain.errors import NotFound, StaleRevision, StoreUnavailable
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import FIRST_TOKENS_KEPT

TELL_S = 1.0
"""Between two that are told of the same playground."""
STILL_S = 20.0
"""While requests go on and nothing else changes: well within what a silent gateway is taken to be gone after."""
_log = logging.getLogger(__name__)


@dataclass
class Tally:
    """What is not told yet of one playground, and how many requests it is answering; `told_at` is of the loop's time."""

    active: int = 0
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    first_tokens: list[float] = field(default_factory=list)
    ended_at: datetime | None = None
    is_new: bool = False
    told_at: float = 0.0

    def take(self, gateway: str) -> Use:
        """All of it, to be told."""
        use = Use(
            gateway, self.active, self.requests, self.prompt_tokens, self.completion_tokens,
            tuple(self.first_tokens[-FIRST_TOKENS_KEPT:]), self.ended_at,
        )  # fmt: skip
        self.requests = self.prompt_tokens = self.completion_tokens = 0
        self.first_tokens, self.ended_at, self.is_new = [], None, False
        return use

    def give_back(self, use: Use) -> None:
        """What could not be told."""
        self.requests += use.requests
        self.prompt_tokens += use.prompt_tokens
        self.completion_tokens += use.completion_tokens
        self.first_tokens = [*use.first_tokens, *self.first_tokens]
        self.ended_at = self.ended_at or use.ended_at
        self.is_new = True


class Uses:
    """The tallies of one gateway, whose name is `gateway`; `most` requests go to one playground at the same time."""

    def __init__(self, services: Services, *, gateway: str, most: int, now: Callable[[], datetime]) -> None:
        self._services, self._gateway, self._most, self._now = services, gateway, most, now
        self._tallies: dict[PlaygroundId, Tally] = {}
        self._news = asyncio.Event()

    @property
    def active(self) -> int:
        """Requests that are being answered, of all playgrounds."""
        return sum(tally.active for tally in self._tallies.values())

    @contextmanager
    def one(self, playground: PlaygroundId) -> Iterator[Tally]:
        """A request to it, from before its body is read; Refused while there are too many."""
        tally = self._tallies.setdefault(playground, Tally())
        if tally.active >= self._most:
            message = f"{playground} is answering {self._most} requests of this gateway; try again in a moment."
            raise Refused(429, message, "too_many_requests", retry_after="1")
        tally.active += 1
        self._changed(tally)
        try:
            yield tally
        finally:
            tally.active -= 1
            tally.ended_at = self._now()
            self._changed(tally)

    async def tell(self) -> None:
        """For as long as the gateway runs."""
        while True:
            try:
                async with asyncio.timeout(STILL_S):
                    await self._news.wait()
            except TimeoutError:
                pass  # of what still goes on, it is told again
            self._news.clear()
            await self.tell_now()
            await asyncio.sleep(TELL_S)

    async def tell_now(self) -> None:
        at = asyncio.get_running_loop().time()
        for playground, tally in list(self._tallies.items()):
            if tally.is_new or (tally.active and at - tally.told_at >= STILL_S):
                tally.told_at = at
                await self._tell(playground, tally)
            if not tally.active and not tally.is_new:
                del self._tallies[playground]

    async def _tell(self, playground: PlaygroundId, tally: Tally) -> None:
        use = tally.take(self._gateway)
        try:
            await self._services.thread(note_use, self._services.ports, playground, use)
        except NotFound:
            _log.warning("%s is gone, and what it was used for is not kept.", playground)
        except (StoreUnavailable, StaleRevision) as error:
            _log.warning("What %s was used for is told later: %s", playground, error.message)
            tally.give_back(use)
            self._news.set()

    def _changed(self, tally: Tally) -> None:
        tally.is_new = True
        self._news.set()
