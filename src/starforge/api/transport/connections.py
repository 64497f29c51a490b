"""The connections of one gateway: how many there may be, and who has to go."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol

from starforge.api.transport.callers import Callers, CallerT
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits

if TYPE_CHECKING:
    from starforge.api.transport.connection import Connection

SWEEP_S = 1.0
EXPIRED = "Your token has expired: connect again with a new one."
VALIDITY_S = 5.0
"""How often it is asked whether the tokens of open connections are still good."""
LOOKS_PER_TURN = 1000
log = logging.getLogger(__name__)


class Revocable(Protocol):
    def revoke(self, sentence: str) -> None:
        """Its token is no longer good."""
        ...


class Connections(Generic[CallerT]):
    """Every WebSocket, and the number of event streams. Deadlines are looked at together: a timer for each would cost
    more than the look."""

    def __init__(self, limits: TransportLimits, callers: Callers[CallerT]) -> None:
        self._limits = limits
        self._callers = callers
        self._sockets: dict[Connection[CallerT], Hashable] = {}
        self._streams: dict[Revocable, CallerT] = {}
        self._by_caller: Counter[Hashable] = Counter()
        self.slow = 0
        """Connections that were closed because nobody read what was sent."""

    # --- how many

    @property
    def sockets(self) -> int:
        return len(self._sockets)

    @property
    def streams(self) -> int:
        return len(self._streams)

    @property
    def is_full(self) -> bool:
        return self.sockets + self.streams >= self._limits.connections

    def add(self, connection: "Connection[CallerT]") -> None:
        self._sockets[connection] = None

    def admit(self, connection: "Connection[CallerT]", caller: Hashable) -> None:
        """Raises RequestRefused if the caller has all the connections that one may have."""
        self._count(caller)
        self._sockets[connection] = caller

    def remove(self, connection: "Connection[CallerT]") -> None:
        self._uncount(self._sockets.pop(connection, None))

    @contextmanager
    def stream(self, stream: Revocable, caller: CallerT) -> Iterator[None]:
        """One event stream. Raises RequestRefused if it is one too many."""
        if self.is_full:
            sentence = "This gateway has all the connections it can have: try again in a moment."
            raise RequestRefused(ErrorCode.UNAVAILABLE, sentence, headers={"retry-after": "1"})
        key = self._callers.key(caller)
        self._count(key)
        self._streams[stream] = caller
        try:
            yield
        finally:
            del self._streams[stream]
            self._uncount(key)

    def _count(self, caller: Hashable) -> None:
        most = self._limits.connections_per_caller
        if self._by_caller[caller] >= most:
            sentence = f"Your token has {most} connections, the most it may have: end one first."
            raise RequestRefused(ErrorCode.TOO_MANY_SUBSCRIPTIONS, sentence)
        self._by_caller[caller] += 1

    def _uncount(self, caller: Hashable) -> None:
        if caller is not None:
            self._by_caller[caller] -= 1
            if not self._by_caller[caller]:
                del self._by_caller[caller]

    # --- who has to go

    async def sweep(self) -> None:
        """Until it is cancelled: pings, closes what is overdue, and ends those whose token is no longer good."""
        asked_at = time.monotonic()
        while True:
            await asyncio.sleep(SWEEP_S)
            try:
                await self._look_at_deadlines()
                if time.monotonic() - asked_at >= VALIDITY_S:
                    asked_at = time.monotonic()
                    await self._end_invalid()
            except Exception:
                log.exception("A look at the connections failed; the next one comes.")

    async def _look_at_deadlines(self) -> None:
        now, epoch = asyncio.get_running_loop().time(), time.time()  # the wall's clock: tokens end by it
        for count, connection in enumerate(list(self._sockets), 1):
            if now >= connection.due:
                connection.on_due(now)
            if connection.blocked and now - connection.blocked_since > self._limits.send_timeout_s:
                connection.close_as_slow()
            if epoch >= connection.expires_at:
                connection.revoke(EXPIRED)
            if count % LOOKS_PER_TURN == 0:
                await asyncio.sleep(0)
        for stream, caller in list(self._streams.items()):
            if self._is_expired(caller, epoch):
                stream.revoke(EXPIRED)

    def _identified(self) -> dict["Revocable", CallerT]:
        found: dict[Revocable, CallerT] = dict(self._streams)
        for socket in self._sockets:
            if socket.incoming is not None:
                found[socket] = socket.incoming.caller
        return found

    def _is_expired(self, caller: CallerT, epoch: float) -> bool:
        expires_at = self._callers.expires_at(caller)
        return expires_at is not None and epoch >= expires_at

    async def _end_invalid(self) -> None:
        """A database that can't be asked ends nobody."""
        by_caller = self._identified()
        valid = set(await self._callers.still_valid(set(by_caller.values()))) if by_caller else set()
        for open_, caller in by_caller.items():
            if caller not in valid:
                open_.revoke("Your token was revoked: connect again with another.")
