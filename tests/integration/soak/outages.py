"""What goes wrong, one after the other. Each returns once the thing at fault is whole again."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass

from redis.asyncio import Redis

from starforge.adapters.store.engine import Database
from starforge.adapters.wiring import Parts
from tests.integration.soak.crowd import Crowd
from tests.integration.soak.documents import ALL_EVENTS
from tests.integration.soak.noise import burst
from tests.integration.soak.site import Site
from tests.integration.soak.subscriber import Subscriber, until

AWAY_S = 2.0
FROZEN_S = 10.0
SMALL_LIMIT = "pubsub 32768 16384 1"
USUAL_LIMIT = "pubsub 33554432 8388608 60"
FAT = "x" * 3000
BURSTS_MAX = 200


@dataclass
class Scene:
    """`noisy` is a job that gets the bursts; `gaps` are those that gateways which are no more have repaired."""

    site: Site
    crowd: Crowd
    parts: Parts
    noisy: str
    gaps: float = 0
    dropped: float = 0
    drained_s: float = 0

    async def count(self) -> None:
        """Add up the numbers of a gateway that is about to end."""
        numbers = await self.site.metrics()
        self.gaps += numbers["starforge_gaps_repaired_total"]
        self.dropped += numbers["starforge_slow_dropped_total"]

    async def burst(self, *, text: str = "noise") -> int:
        return await asyncio.to_thread(burst, self.parts, self.noisy, text=text)


async def redis_is_killed(scene: Scene) -> None:
    await asyncio.to_thread(scene.site.redis.stop)
    await asyncio.sleep(AWAY_S)
    await asyncio.to_thread(scene.site.redis.start)
    await _is_heard(scene)


async def redis_is_frozen(scene: Scene) -> None:
    scene.site.redis.freeze()
    try:
        await asyncio.sleep(FROZEN_S)
    finally:
        scene.site.redis.thaw()
    await _is_heard(scene)


async def redis_overflows(scene: Scene) -> None:
    """The gateway stands still while so much is published that Redis hangs up on it."""
    async with Redis.from_url(scene.site.redis.url, socket_timeout=10) as redis:
        await redis.config_set("client-output-buffer-limit", SMALL_LIMIT)
        await asyncio.to_thread(_stand_still, scene)
        try:
            for _ in range(BURSTS_MAX):
                await scene.burst()
                if not await scene.site.hearers():
                    break
            assert not await scene.site.hearers(), "Redis kept all that it could not send"
        finally:
            scene.site.gateway.thaw()
        await redis.config_set("client-output-buffer-limit", USUAL_LIMIT)
    await _is_heard(scene)


def _stand_still(scene: Scene) -> None:
    """Stop the gateway while we hold the database: stopped in the middle of a write, it would hold up all others."""
    with closing(Database(scene.parts.settings.database)) as database, database.writing():
        scene.site.gateway.freeze()


async def gateway_is_killed(scene: Scene) -> None:
    await scene.count()
    await asyncio.to_thread(scene.site.gateway.end, signal.SIGKILL)
    await asyncio.to_thread(scene.site.gateway.start)


async def gateway_is_replaced(scene: Scene) -> None:
    """As a new version is rolled out: its sockets are closed with 1012."""
    await scene.crowd.connected()
    await scene.count()
    sockets = [one for one in scene.crowd.members if not (one.over_sse or one.is_done)]
    before = {one: one.story.ends.copy() for one in sockets}
    began = time.monotonic()
    assert await asyncio.to_thread(scene.site.gateway.end, signal.SIGTERM) == 0
    scene.drained_s = time.monotonic() - began
    await until(lambda: all(one.story.ends != before[one] for one in sockets), "No socket is left open")
    otherwise = {one.name: why for one in sockets if not (why := one.story.ends - before[one])["1012"]}
    assert not otherwise, f"not closed with 1012: {otherwise}"
    await asyncio.to_thread(scene.site.gateway.start)


async def clients_are_cut(scene: Scene) -> None:
    """Half of them, twice: the second time, many of them have only begun to come back."""
    chance = random.Random(scene.crowd.resumes)
    for _ in range(2):
        for one in chance.sample(scene.crowd.members, len(scene.crowd.members) // 2):
            one.cut()
        await scene.crowd.told(len(scene.crowd.members))


async def clients_are_frozen(scene: Scene) -> None:
    """Some of every kind stop reading; those to whom much is sent are closed as slow."""
    greedy = [one for one in scene.crowd.members if one.asked.query == ALL_EVENTS]
    await _come_back(greedy)
    resumes = {one: one.story.resumes for one in greedy}
    frozen = [*greedy, *scene.crowd.members[5::9]]
    before = (await scene.site.metrics())["starforge_slow_dropped_total"]
    for one in frozen:
        one.freeze()
    try:
        await _are_dropped(scene, greedy, before)
    finally:
        for one in frozen:
            one.wire.small = False
            one.thaw()
    await until(lambda: all(one.story.resumes > resumes[one] for one in greedy), "The slow have resumed")


async def _come_back(greedy: list[Subscriber]) -> None:
    """They connect again, with a small buffer."""
    resumes = {one: one.story.resumes for one in greedy}
    for one in greedy:
        one.wire.small = True
        one.cut()
    await until(lambda: all(one.story.resumes > resumes[one] for one in greedy), "They have come back")


async def _are_dropped(scene: Scene, greedy: list[Subscriber], before: float) -> None:
    for _ in range(8):
        await scene.burst(text=FAT)

    async def dropped() -> bool:
        return (await scene.site.metrics())["starforge_slow_dropped_total"] - before >= len(greedy)

    await until(dropped, "Readers that do not read are closed as slow")


async def _is_heard(scene: Scene) -> None:
    async def hears() -> bool:
        return await scene.site.hearers() == 1

    await until(hears, "The gateway hears Redis")


OUTAGES: tuple[Callable[[Scene], Awaitable[None]], ...] = (
    redis_is_killed, redis_is_frozen, redis_overflows, gateway_is_killed, clients_are_cut, clients_are_frozen,
    gateway_is_replaced,
)  # fmt: skip
