"""What a gateway knows of health, by what is stored and by what it finds itself, and what it tells of that."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from strawberry.types import ExecutionResult

from starforge.adapters.store import SqlStore, migrate
from starforge.api.context import Context, Services
from starforge.api.cursors import feed_cursor
from starforge.api.feed.hub import Hub
from starforge.api.health import desk as room
from starforge.api.schema import make_schema
from starforge.api.transport.source import Source
from starforge.domain.actions.check_health import check_health
from starforge.domain.actions.perform import PARK_AFTER
from starforge.domain.changes import Changes
from starforge.domain.errors import RedisUnavailable, StoreUnavailable
from starforge.domain.health import Access, AccessCheck, ObserverHeard
from starforge.domain.health import HealthCheckKind as Kind
from starforge.domain.health import HealthStatus as Status
from starforge.domain.job import Actor, ActorKind
from starforge.domain.rights import Caller, Role
from tests.unit.actions.fakes import START, WELL
from tests.unit.actions.world import World
from tests.unit.api.feeding import LIMIT_S, Ears
from tests.unit.api.test_rights import StoreFeed

pytestmark = pytest.mark.anyio
SCHEMA = make_schema()


class Losable:
    """A store that can be away."""

    def __init__(self, store: Any) -> None:
        self._store, self.away, self.hangs = store, False, threading.Event()
        self.hangs.set()

    def health(self, **asked: Any) -> Any:
        self.hangs.wait(LIMIT_S)
        if self.away:
            raise StoreUnavailable("The database can't be asked.")
        return self._store.health(**asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Gateway:
    """The inside of a gateway: its hub hears nothing but what tests make it read."""

    def __init__(self, world: World) -> None:
        self.world, self.redis_down = world, False
        self.store = Losable(world.sql)
        self.hub = Hub(StoreFeed(world.sql), Ears().hear)
        ports = replace(world.ports, store=self.store)
        self.services = Services(ports, self.hub, retention_s=60, ping=self._ping)

    def _ping(self) -> None:
        if self.redis_down:
            raise RedisUnavailable("Redis can't be asked.")

    def context(self, role: Role = Role.ADMIN) -> Context:
        caller = Caller(Actor("me", ActorKind.TOKEN), role, None, None)
        return Context(caller, self.services, self.world.clock(), self.hub.position)

    async def status(self, kind: Kind) -> Status:
        known = await self.services.health.look()
        [found] = [check for check in known.health.checks if check.kind is kind]
        return found.status

    async def ask(self, document: str, role: Role = Role.ADMIN) -> Any:
        result = await SCHEMA.execute(document, context_value=self.context(role))
        assert result.errors is None
        assert result.data is not None
        return result.data

    @asynccontextmanager
    async def live(self) -> AsyncIterator[Callable[[], Any]]:
        """A live source of the subscription, listening; each call gives what comes next."""
        context = self.context()
        context.source = Source(live=True)
        stream = await SCHEMA.subscribe("subscription { health { kind health { status } } }", context_value=context)
        assert not isinstance(stream, ExecutionResult)
        async with aclosing(stream) as results:
            coming = asyncio.ensure_future(anext(results))
            await asyncio.wait_for(context.source.listening.wait(), LIMIT_S)

            async def following() -> Any:
                nonlocal coming
                result = await asyncio.wait_for(coming, LIMIT_S)
                coming = asyncio.ensure_future(anext(results))
                return (result.data or {})["health"]

            yield following
            coming.cancel()
            await asyncio.wait([coming])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    url = f"sqlite:///{tmp_path}/store.db"
    migrate(url)
    store = SqlStore(url)
    there = World(tmp_path, store)
    store.renew_observer("home", holder="one", at=START, lease_s=3600)
    store.note_heard("home", holder="one", heard=ObserverHeard(START, 0.1))
    check_health(there.ports)
    yield there
    store.close()


@contextmanager
def opened(world: World) -> Iterator[Gateway]:
    gateway = Gateway(world)
    try:
        yield gateway
    finally:
        gateway.store.hangs.set()
        gateway.services.close()


@pytest.fixture
async def gateway(world: World) -> AsyncIterator[Gateway]:
    with opened(world) as there:
        await there.hub.start()
        yield there


async def test_all_is_well(gateway: Gateway) -> None:
    known = await gateway.services.health.look()
    assert (known.health.status, known.revision) == (Status.OK, 1)
    assert (await gateway.services.health.look()).revision == 1


async def test_health_is_told_while_the_database_is_away(gateway: Gateway) -> None:
    await gateway.services.health.look()
    gateway.store.away = True
    health = (await gateway.ask("{ health { status message commands { due } fleets { fleet status } } }"))["health"]
    assert health == {
        "status": "DOWN", "message": "The database can't be asked.", "commands": {"due": 0},
        "fleets": [{"fleet": "home", "status": "OK"}],
    }  # fmt: skip


async def test_a_database_that_hangs_is_down_and_asked_once(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    await gateway.services.health.look()
    monkeypatch.setattr(room, "WITHIN_S", 0.05)
    gateway.store.hangs.clear()
    for _ in range(3):
        assert await gateway.status(Kind.DATABASE) is Status.DOWN
    gateway.store.hangs.set()
    monkeypatch.undo()
    await asyncio.wait([*gateway.services.health._hanging.values()])
    assert await gateway.status(Kind.DATABASE) is Status.OK


async def test_what_was_never_known_can_not_be_told(world: World) -> None:
    with opened(world) as gateway:
        gateway.store.away = True
        with pytest.raises(StoreUnavailable):
            await gateway.services.health.look()
        gateway.store.away = False
        assert (await gateway.services.health.look()).health.status is Status.OK


async def test_redis_is_the_gateways_own(gateway: Gateway) -> None:
    gateway.redis_down = True
    known = await gateway.services.health.look()
    assert known.health.status is Status.DEGRADED
    assert str(known.health.message).startswith("Redis can't be asked. Until it is back")


async def test_who_asks_while_somebody_looks_gets_a_look_of_their_own(gateway: Gateway) -> None:
    gateway.store.hangs.clear()
    first = asyncio.ensure_future(gateway.services.health.look())
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(gateway.services.health.look()) for _ in range(5)]
    await asyncio.sleep(0)
    gateway.redis_down = True
    gateway.store.hangs.set()
    await first
    told = await asyncio.gather(*others)
    assert {known.health.status for known in told} == {Status.DEGRADED}
    assert len({id(known) for known in told}) == 1


async def test_a_change_of_its_own_is_told_live(gateway: Gateway) -> None:
    await gateway.services.health.look()
    async with gateway.live() as following:
        for down, status in ((True, "DEGRADED"), (False, "OK")):
            gateway.redis_down = down
            await gateway.services.health.look()
            assert await following() == {"kind": "UPDATED", "health": {"status": status}}


async def test_a_change_that_workers_find_is_told_by_the_feed(gateway: Gateway) -> None:
    await gateway.services.health.look()
    async with gateway.live() as following:
        gateway.world.objects.down = True
        check_health(gateway.world.ports)
        await gateway.hub._catch_up()
        assert await following() == {"kind": "UPDATED", "health": {"status": "DEGRADED"}}
        gateway.redis_down = True  # what comes next is of this change, so the one before was told once
        await gateway.services.health.look()
        assert (await following())["health"] == {"status": "DEGRADED"}


@pytest.mark.parametrize(("after", "kind"), [(None, "SNAPSHOT"), (0, "UPDATED")])
async def test_it_begins_with_how_it_is_now(gateway: Gateway, after: int | None, kind: str) -> None:
    cursor = None if after is None else feed_cursor(after)
    document = "subscription($after: String) { health(after: $after) { kind cursor health { status version } } }"
    stream = await SCHEMA.subscribe(document, variable_values={"after": cursor}, context_value=gateway.context())
    assert not isinstance(stream, ExecutionResult)
    told = [(result.data or {})["health"] async for result in stream]
    assert [one["kind"] for one in told] == [kind, "BOOKMARK"]
    assert told[0]["health"]["status"] == "OK"
    assert told[1] == {"kind": "BOOKMARK", "cursor": feed_cursor(gateway.hub.position), "health": None}


PARKED = "parked parkedCommands { id kind tries error workload { id } }"
OPERATED = f"{{ health {{ commands {{ {PARKED} }} fleets {{ access {{ verb }} }} }} }}"


async def test_what_only_operators_need_is_null_for_others(gateway: Gateway) -> None:
    world = gateway.world
    access = Access(START, (AccessCheck("create", "rayjobs.ray.io", allowed=True),))
    world.fleet.probe = replace(WELL, access=access)
    job = world.submit()
    for number in range(PARK_AFTER):
        lease = world.take(world.due()[0], by=f"worker {number}")
        if number + 1 < PARK_AFTER:
            world.clock.forward(200)
    world.sql.commit(Changes(park="It is broken."), at=world.clock(), lease=lease)
    check_health(world.ports)
    for role in (Role.VIEWER, Role.SUBMITTER):
        health = (await gateway.ask(OPERATED, role))["health"]
        assert health == {"commands": {"parked": 1, "parkedCommands": None}, "fleets": [{"access": None}]}
    health = (await gateway.ask(OPERATED))["health"]
    assert health["fleets"] == [{"access": [{"verb": "create"}]}]
    [parked] = health["commands"]["parkedCommands"]
    assert parked.pop("workload") == {"id": job}
    assert parked == {"id": lease.command.id, "kind": "PACKAGE", "tries": PARK_AFTER, "error": "It is broken."}


async def test_a_fleet_tells_its_own(gateway: Gateway) -> None:
    [fleet] = (await gateway.ask("{ fleets { name health { fleet kind status checks { kind } } } }"))["fleets"]
    kinds = [{"kind": kind} for kind in ("KUBERNETES_API", "OPERATOR", "OBSERVER", "TEARDOWN")]
    health = {"fleet": "home", "kind": "SIMULATED", "status": "OK", "checks": kinds}
    assert fleet == {"name": "home", "health": health}


async def test_a_job_is_as_fresh_as_its_fleet_is_heard(gateway: Gateway) -> None:
    world = gateway.world
    job = world.running()
    seen = world.job(job).attempt.observed_at
    asked = f'{{ job(id: "{job}") {{ observedAt observation {{ observedAt freshness }} }} }}'
    before = (await gateway.ask(asked))["job"]
    revision = world.job(job).revision
    world.clock.forward(60)
    world.sql.note_heard("home", holder="one", heard=ObserverHeard(world.clock(), 0.1))
    await gateway.services.health.look()
    after = (await gateway.ask(asked))["job"]
    assert seen is not None
    assert datetime.fromisoformat(before["observedAt"]) == seen
    assert datetime.fromisoformat(after["observedAt"]) == world.clock()
    assert after["observation"] == {"observedAt": after["observedAt"], "freshness": "LIVE"}
    assert world.job(job).revision == revision, "nothing is written for it"
