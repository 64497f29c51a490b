"""Hears about new rows of the feed on one supervised connection, and says whenever something may have been missed."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Self

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from starforge.adapters.bus.messages import Unreadable, channel, decode
from starforge.domain.queries import FeedRow

_BACKLOG = 256  # messages; beyond it we stop reading, and Redis in the end hangs up, which is told
_PAUSE_MAX_S = 1.0


class GapWhy(StrEnum):
    SUBSCRIBED = "SUBSCRIBED"
    LOST = "LOST"
    SILENCE = "SILENCE"
    UNREADABLE = "UNREADABLE"


@dataclass(frozen=True)
class News:
    """Rows of one commit, in order."""

    rows: tuple[FeedRow, ...]


@dataclass(frozen=True)
class Gap:
    """Something may have been missed up to now: read the table."""

    why: GapWhy


class Subscriber:
    """Iterate it within its `async with` block: News, and a Gap at every (re)subscription, loss and second of silence.

    Redis may lose messages without a sign when a connection breaks, and a server that hangs looks like one that has
    nothing to say. So a connection is asked for a sign of life when it is quiet for `quiet_s`, and dropped when none
    comes for as long again; the client's own reconnecting is off, as it is silent.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "starforge",
        silence_s: float = 1.0,
        quiet_s: float = 1.0,
        backlog: int = _BACKLOG,
    ) -> None:
        self._url = url
        self._channel = channel(url, prefix)
        self._silence_s = silence_s
        self._quiet_s = quiet_s
        self._heard: asyncio.Queue[News | Gap] = asyncio.Queue(backlog)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._supervise(), name="starforge-subscriber")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aiter__(self) -> AsyncIterator[News | Gap]:
        while True:
            yield await self._next()

    async def _next(self) -> News | Gap:
        """The next thing heard; the supervisor's own failure, a defect, is raised here."""
        if self._task and self._task.done():
            self._task.result()
        try:
            async with asyncio.timeout(self._silence_s):
                return await self._heard.get()
        except TimeoutError:
            return Gap(GapWhy.SILENCE)

    async def _supervise(self) -> None:
        """Listen for ever; after each loss, wait for a random time that grows to a second, and connect again."""
        pause = 0.05
        while True:
            try:
                async with self._connect() as redis, redis.pubsub() as pubsub:
                    await pubsub.subscribe(self._channel)
                    async for heard in self._listen(pubsub):
                        pause = 0.05
                        await self._heard.put(heard)
            except (RedisError, OSError, TimeoutError):
                await self._heard.put(Gap(GapWhy.LOST))
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311
            pause = min(pause * 2, _PAUSE_MAX_S)

    def _connect(self) -> Redis:
        # Protocol 2: in 3 a PING on a subscribed connection is answered outside of the stream of messages.
        return Redis.from_url(
            self._url, socket_timeout=self._quiet_s, socket_connect_timeout=self._quiet_s, protocol=2,
            retry=Retry(NoBackoff(), 0), health_check_interval=0,
        )  # fmt: skip

    async def _listen(self, pubsub: PubSub) -> AsyncIterator[News | Gap]:
        """What a connection says; TimeoutError when it does not answer to a PING."""
        asked = False
        while True:
            message = await pubsub.get_message(timeout=self._quiet_s)
            if message is None and asked:
                raise TimeoutError("no answer to PING")
            asked = message is None
            if message is None:
                async with asyncio.timeout(self._quiet_s):
                    await pubsub.ping()
            elif message["type"] == "subscribe":
                yield Gap(GapWhy.SUBSCRIBED)
            elif message["type"] == "message":
                yield _read(message["data"])


def _read(data: bytes) -> News | Gap:
    try:
        return News(decode(data))
    except Unreadable:
        return Gap(GapWhy.UNREADABLE)


__all__ = ["Gap", "GapWhy", "News", "Subscriber"]
