"""What a gateway knows of health: what workers have stored, and the database and Redis as this gateway finds them."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from starforge.api.feed.hub import Hub
from starforge.domain.errors import RedisUnavailable, StoreUnavailable
from starforge.domain.health import Finding, Health, HealthCheckKind, HealthReading, HealthStatus
from starforge.domain.judging import judge, what_is_told
from starforge.domain.ports import Ports
from starforge.domain.queries import FeedKind, FeedRow

LOOK_EVERY_S = 5.0
WITHIN_S = 3.0
SUBJECT = "health"
"""Of rows that this gateway tells itself: its own view of health has changed, without a row of the feed."""
T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Known:
    """Health as of `at`; `revision` grows whenever something changes that people are told."""

    health: Health
    revision: int
    at: datetime


class HealthDesk:
    """One for each gateway. `ping` asks Redis for a sign of life, RedisUnavailable if none comes; None without one."""

    def __init__(self, ports: Ports, hub: Hub, ping: Callable[[], None] | None = None) -> None:
        self._ports, self._hub, self._ping = ports, hub, ping
        # Of its own: what hangs here, and what hangs elsewhere, hold each other up in nothing.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="health")
        self._hanging: dict[str, asyncio.Future[Any]] = {}
        self._reading: HealthReading | None = None
        self._now: asyncio.Task[Known] | None = None
        self._next: asyncio.Task[Known] | None = None
        self.known: Known | None = None

    async def look(self) -> Known:
        """Health, looked at after this call began, and once for all who wait. Never fails for what is down itself.

        StoreUnavailable if the database can't be asked and never could be.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._now))
        return await asyncio.shield(self._next)

    async def run(self) -> None:
        """Look every few seconds until cancelled, so that changes are told that no row of the feed tells of."""
        while True:
            try:
                await self.look()
            except StoreUnavailable as outage:
                _log.warning("Health is not known yet: %s", outage)
            except Exception:  # noqa: BLE001  without this, subscribers hear of nothing more
                _log.exception("Looking at health failed; it is tried again.")
            await asyncio.sleep(LOOK_EVERY_S)

    def heard_at(self, fleet: str | None) -> datetime | None:
        """When the observer of a fleet last heard all of it, as of the last look; None if that is not known."""
        lease = self._reading.observers.get(fleet) if self._reading and fleet else None
        return lease.heard.at if lease else None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _look_after(self, before: "asyncio.Task[Known] | None") -> Known:
        if before is not None:
            await asyncio.wait([before])
        self._now, self._next = self._next, None  # who asks from now on, asks the next one
        return await self._look()

    async def _look(self) -> Known:
        checks: list[Awaitable[Finding]] = [self._database()]
        if self._ping is not None:
            checks.append(self._redis(self._ping))
        own = await asyncio.gather(*checks)
        if self._reading is None:
            raise StoreUnavailable(own[0].message or "The database can't be asked.")
        at, before = self._ports.now(), self.known
        fleets = [self._ports.fleet.name]
        health = judge(self._reading, own, fleets, before.health if before else None, at)
        changed = before is None or what_is_told(health) != what_is_told(before.health)
        self.known = Known(health, (before.revision if before else 0) + changed, at)
        if changed and before is not None:
            self._hub.offer(FeedRow(self._hub.position, at, FeedKind.HEALTH, SUBJECT, None, None))
        return self.known

    async def _database(self) -> Finding:
        kind, began = HealthCheckKind.DATABASE, time.monotonic()
        try:
            self._reading = await self._within("database", lambda: self._ports.store.health(at=self._ports.now()))
        except StoreUnavailable as outage:
            return Finding(kind, HealthStatus.DOWN, outage.message)
        except TimeoutError:
            return Finding(kind, HealthStatus.DOWN, f"The database gave no answer within {WITHIN_S:g} seconds.")
        return Finding(kind, seconds=time.monotonic() - began)

    async def _redis(self, ping: Callable[[], None]) -> Finding:
        kind, began = HealthCheckKind.REDIS, time.monotonic()
        so = "Until it is back no work begins, and changes come up to a second later."
        try:
            await self._within("redis", ping)
        except RedisUnavailable as outage:
            return Finding(kind, HealthStatus.DOWN, f"{outage.message} {so}")
        except TimeoutError:
            return Finding(kind, HealthStatus.DOWN, f"Redis gave no answer within {WITHIN_S:g} seconds. {so}")
        return Finding(kind, seconds=time.monotonic() - began)

    async def _within(self, name: str, call: Callable[[], T]) -> T:
        """The answer of a blocking call; TimeoutError while it, or the one before it, hangs."""
        hanging = self._hanging.get(name)
        if hanging is not None and not hanging.done():
            raise TimeoutError(name)
        running = asyncio.get_running_loop().run_in_executor(self._pool, call)
        self._hanging[name] = running
        done, _ = await asyncio.wait([running], timeout=WITHIN_S)
        if not done:
            running.add_done_callback(_forget)
            raise TimeoutError(name)
        return running.result()


def _forget(late: "asyncio.Future[T]") -> None:
    """What came too late is looked at no more; an error of it was told as one that hangs."""
    if not late.cancelled():
        late.exception()
