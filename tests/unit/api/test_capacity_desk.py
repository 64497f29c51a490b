"""What a gateway knows of capacity: read once for all, only where it changed, and told once for each change."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from strawberry.types import ExecutionResult

from starforge.adapters.store import SqlStore, migrate
from starforge.api.capacity import desk as desks
from starforge.api.capacity import live_jobs
from starforge.api.context import Context, Services
from starforge.api.cursors import feed_cursor
from starforge.api.feed.hub import Hub
from starforge.api.schema import make_schema
from starforge.api.transport.source import Source
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView, Room
from starforge.domain.changes import Changes, NodesWrite
from starforge.domain.errors import CursorExpired, StoreUnavailable
from starforge.domain.health import ObserverHeard
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import JobId, RunKey
from starforge.domain.rights import Caller, Role
from tests.unit.actions.fakes import START
from tests.unit.actions.world import ANN, World, with_limits
from tests.unit.api.feeding import LIMIT_S, Ears
from tests.unit.api.test_rights import StoreFeed

pytestmark = pytest.mark.anyio
SCHEMA = make_schema()
ROOMY = Room(4, 64_000, 2**40, 100)
LIVE = """subscription($after: String) { capacity(after: $after) {
  cursor kind removedNodeIds changedNodes { name free blocked causes { cause } }
  fleet { observation { freshness problem { message } } series { name free } waiting { machines message } }
} }"""


class Counting:
    """A store that counts what it is asked, and can be away."""

    def __init__(self, store: Any) -> None:
        self._store, self.away, self.asked = store, False, list[tuple[str, Any]]()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in ("fleet_nodes", "jobs_by_id", "job_page"):
            return call

        def counted(*given: Any, **more: Any) -> Any:
            if self.away:
                raise StoreUnavailable("The database can't be asked.")
            self.asked.append((name, given[0]))
            return call(*given, **more)

        return counted


class Inside:
    """The inside of a gateway, whose hub hears what tests make it read."""

    def __init__(self, world: World) -> None:
        self.world, self.store = world, Counting(world.sql)
        self.hub = Hub(StoreFeed(world.sql), Ears().hear)
        self.services = Services(replace(world.ports, store=self.store), self.hub, retention_s=60)
        self.desk = self.services.capacity

    async def hear(self) -> None:
        await self.hub._catch_up()

    def context(self) -> Context:
        caller = Caller(Actor("me", ActorKind.TOKEN), Role.ADMIN, "default", None)
        return Context(caller, self.services, self.world.clock(), self.hub.position)

    async def ask(self, document: str) -> Any:
        result = await SCHEMA.execute(document, context_value=self.context())
        assert result.errors is None
        assert result.data is not None
        return result.data

    async def opening(self, **variables: Any) -> list[Any]:
        """The steps of an opening."""
        context = self.context()
        context.source = Source()
        stream = await SCHEMA.subscribe(LIVE, context_value=context, variable_values=variables)
        assert not isinstance(stream, ExecutionResult)
        return [(result.data or {})["capacity"] async for result in stream]

    @asynccontextmanager
    async def live(self) -> AsyncIterator[Callable[[], Any]]:
        """A live source, listening; each call gives what comes next."""
        context = self.context()
        context.source = Source(live=True)
        stream = await SCHEMA.subscribe(LIVE, context_value=context)
        assert not isinstance(stream, ExecutionResult)
        async with aclosing(stream) as results:
            coming = asyncio.ensure_future(anext(results))
            await asyncio.wait_for(context.source.listening.wait(), LIMIT_S)

            async def following() -> Any:
                nonlocal coming
                result = await asyncio.wait_for(coming, LIMIT_S)
                coming = asyncio.ensure_future(anext(results))
                return (result.data or {})["capacity"]

            yield following
            coming.cancel()
            await asyncio.wait([coming])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    url = f"sqlite:///{tmp_path}/store.db"
    migrate(url)
    store = SqlStore(url)
    store.renew_observer("home", holder="one", at=START, lease_s=3600)
    store.note_heard("home", holder="one", heard=ObserverHeard(START, 0.1))
    yield World(tmp_path, store)
    store.close()


@pytest.fixture
async def inside(world: World) -> AsyncIterator[Inside]:
    there = Inside(world)
    await there.hub.start()
    yield there
    there.services.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def a_node(name: str, *claims: Claim, **changes: Any) -> NodeView:
    used = sum((claim.room for claim in claims), Room())
    return replace(NodeView(name, "h200", 4, ROOMY, used, claims), **changes)


def a_claim(run: RunKey, gpus: int = 1, pool: str = "train") -> Claim:
    return Claim(
        f"{run}-{pool}", f"{run.job}-head", "training", Room(gpus, 1000, 2**30, 1), run, pool=pool, since=START
    )


def see(world: World, *nodes: NodeView, gone: Sequence[str] = (), fleet: str = "home") -> None:
    seen = NodesSeen(world.clock(), nodes, tuple(gone))
    world.sql.commit(Changes(nodes=[NodesWrite(fleet, seen)]), at=world.clock())


async def test_what_was_never_told_is_unknown_and_not_none(inside: Inside) -> None:
    told = await inside.ask("{ capacity { observedAt observation { freshness } series { name } waiting { pool } } }")
    assert told["capacity"] == [
        {"observedAt": None, "observation": {"freshness": "NEVER"}, "series": None, "waiting": []}
    ]


async def test_a_fleet_of_another_name_is_absent(inside: Inside) -> None:
    assert (await inside.ask('{ capacity(fleet: "elsewhere") { id } }'))["capacity"] == []


async def test_holders_have_their_job_and_its_clock(world: World, inside: Inside) -> None:
    job = world.running(with_limits(active=600))
    see(world, a_node("node-a", a_claim(world.run(job))))
    told = await inside.ask(
        "{ capacity { series { used free holders { name until since workload { id } } } waiting { pool } } }"
    )
    due = world.job(job).attempt.clocks[-1].due_at
    assert due is not None
    holder = {"name": "digits", "until": due.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
              "since": "2026-01-01T00:00:00.000Z", "workload": {"id": job}}  # fmt: skip
    assert told["capacity"] == [{"series": [{"used": 1, "free": 3, "holders": [holder]}], "waiting": []}]


async def test_a_job_waits_for_machines_without_a_node(world: World, inside: Inside) -> None:
    first = world.pending()
    world.clock.forward(1)
    second = world.submit()
    see(world, a_node("node-a"))
    known = await inside.desk.look()
    assert [(one.job, one.machines, one.gpus) for one in known.demands] == [(first, 1, 1), (second, 1, 1)]
    see(world, a_node("node-a", a_claim(world.run(first))))
    assert [one.job for one in (await inside.desk.look()).demands] == [second]


async def test_everything_has_an_id_to_be_fetched_by(world: World, inside: Inside) -> None:
    see(world, a_node("node.with.dots"), a_node("plain", series=None))
    [fleet] = (await inside.ask("{ capacity { id series { id name nodes { id name } } } }"))["capacity"]
    things = [fleet, *fleet["series"], *(node for one in fleet["series"] for node in one["nodes"])]
    assert len(things) == 5
    for thing in things:
        on = "... on FleetCapacity { id } ... on SeriesCapacity { name } ... on GpuNode { name }"
        found = (await inside.ask(f'{{ node(id: "{thing["id"]}") {{ id {on} }} }}'))["node"]
        assert found == {name: thing[name] for name in found}
    for absent in ("node.home.x", "series.home.x", "capacity.x", "node.other.plain", "series.home", "node."):
        assert (await inside.ask(f'{{ node(id: "{absent}") {{ id }} }}'))["node"] is None


async def test_many_who_ask_at_once_are_one_look(world: World, inside: Inside) -> None:
    see(world, a_node("node-a"))
    await inside.desk.look()
    inside.store.asked.clear()
    first, *others = await asyncio.gather(*(inside.desk.look() for _ in range(20)))
    assert [name for name, _ in inside.store.asked] == ["fleet_nodes"]
    assert all(other is first for other in others)


async def test_only_what_changed_is_read_and_worked_out_again(world: World, inside: Inside) -> None:
    one, other = world.running(), world.pending()
    see(world, a_node("node-a", a_claim(world.run(one))))
    await inside.hear()
    before = await inside.desk.look()
    inside.store.asked.clear()
    cancel(world.ports, other, Wish(ANN))
    world.work()
    await inside.hear()
    after = await inside.desk.look()
    assert inside.store.asked == [("fleet_nodes", "home"), ("jobs_by_id", [other])]
    assert after.made is before.made
    assert (after.jobs[other].decided, after.demands) == (True, [])


async def test_a_job_that_ended_is_known_as_long_as_it_holds(world: World, inside: Inside) -> None:
    see(world, a_node("node-a"))
    await inside.desk.look()
    job = world.running()
    cancel(world.ports, job, Wish(ANN))
    world.settle(120)
    assert world.job(job).ended
    stranger = RunKey(JobId("job-of-another-installation"), 1)
    see(world, a_node("node-a", a_claim(world.run(job)), a_claim(stranger)))
    await inside.hear()
    assert list((await inside.desk.look()).jobs) == [job]
    inside.store.asked.clear()
    assert list((await inside.desk.look()).jobs) == [job]
    assert [name for name, _ in inside.store.asked] == ["fleet_nodes"]
    see(world, a_node("node-a"))
    await inside.hear()
    assert (await inside.desk.look()).jobs == {}


async def test_rows_that_were_lost_make_all_be_read_again(
    world: World, inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    await inside.desk.look()
    for listener in inside.hub._listeners:
        listener.end(CursorExpired("lost"))
    job = world.submit()
    inside.store.asked.clear()
    assert list((await inside.desk.look()).jobs) == [job]
    assert [name for name, _ in inside.store.asked] == ["fleet_nodes", "job_page"]
    monkeypatch.setattr(live_jobs, "TOLD_MAX", 1)
    monkeypatch.setattr(live_jobs, "PAGE", 1)
    jobs = [job, world.submit(), world.submit()]
    await inside.hear()
    assert sorted((await inside.desk.look()).jobs) == sorted(jobs)


async def test_what_an_outage_kept_from_being_read_is_read_after_it(world: World, inside: Inside) -> None:
    await inside.desk.look()
    job = world.submit()
    await inside.hear()
    inside.store.away = True
    with pytest.raises(StoreUnavailable):
        await inside.desk.look()
    inside.store.away = False
    assert list((await inside.desk.look()).jobs) == [job]


async def test_the_revision_rises_with_what_people_are_told(world: World, inside: Inside) -> None:
    job = world.running()
    see(world, a_node("node-a", a_claim(world.run(job))))
    first = await inside.desk.look()
    world.sql.note_heard("home", holder="one", heard=ObserverHeard(world.clock(), 0.1))
    world.observer.observe([world.lines(job, "printed")])
    await inside.hear()
    assert (await inside.desk.look()).revision == first.revision
    see(world, a_node("node-a", a_claim(world.run(job)), cordoned=True))
    await inside.hear()
    assert (await inside.desk.look()).revision == first.revision + 1
    world.submit()
    await inside.hear()
    assert (await inside.desk.look()).revision == first.revision + 2


async def test_a_fleet_that_is_not_heard_is_stale(world: World, inside: Inside) -> None:
    see(world, a_node("node-a"))
    world.clock.forward(7200)
    await inside.services.health.look()
    [fleet] = (
        await inside.ask("{ capacity { series { free } observation { freshness staleSince problem { message } } } }")
    )["capacity"]
    assert fleet["series"] == [{"free": 4}]
    assert fleet["observation"]["freshness"] == "STALE"
    assert fleet["observation"]["staleSince"] == "2026-01-01T01:00:00.000Z"
    assert "Nobody observes fleet home" in fleet["observation"]["problem"]["message"]


async def test_an_opening_is_a_snapshot_and_a_bookmark(world: World, inside: Inside) -> None:
    see(world, a_node("node-a"), a_node("node-b"))
    await inside.hear()
    snapshot, bookmark = await inside.opening()
    assert (snapshot["kind"], bookmark["kind"], bookmark["fleet"]) == ("SNAPSHOT", "BOOKMARK", None)
    assert [node["name"] for node in snapshot["changedNodes"]] == ["node-a", "node-b"]
    assert snapshot["cursor"] == bookmark["cursor"] == feed_cursor(inside.hub.position)


async def test_behind_a_cursor_are_the_nodes_that_changed_or_went(world: World, inside: Inside) -> None:
    see(world, a_node("node-a"), a_node("node-b"), a_node("node-c"))
    await inside.hear()
    cursor = feed_cursor(inside.hub.position)
    see(world, a_node("node-b", cordoned=True), gone=["node-c"])
    await inside.hear()
    change, bookmark = await inside.opening(after=cursor)
    assert (change["kind"], bookmark["kind"]) == ("UPDATED", "BOOKMARK")
    assert [(node["name"], node["blocked"]) for node in change["changedNodes"]] == [("node-b", 4)]
    assert change["removedNodeIds"] == ["node.home.node-c"]
    nothing, _ = await inside.opening(after=bookmark["cursor"])
    assert (nothing["changedNodes"], nothing["removedNodeIds"]) == ([], [])
    assert nothing["fleet"]["series"] == [{"name": "h200", "free": 4}]


async def test_a_change_is_told_live_with_its_node_alone(world: World, inside: Inside) -> None:
    see(world, a_node("node-a"), a_node("node-b"))
    await inside.hear()
    async with inside.live() as following:
        see(world, a_node("node-b", cordoned=True))
        await inside.hear()
        change = await following()
        assert [node["name"] for node in change["changedNodes"]] == ["node-b"]
        assert change["changedNodes"][0]["causes"] == [{"cause": "CORDONED"}]
        world.submit()
        await inside.hear()
        change = await following()
        assert (change["changedNodes"], len(change["fleet"]["waiting"])) == ([], 1)


async def test_many_changes_are_few_looks(world: World, inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    see(world, a_node("node-a"))
    await inside.hear()
    async with inside.live() as following, inside.live() as other:
        see(world, a_node("node-a", cordoned=True))
        await inside.hear()
        await following()
        await other()
        inside.store.asked.clear()
        monkeypatch.setattr(desks, "PAUSE_S", 0.5)
        jobs = [world.submit() for _ in range(150)]
        await inside.hear()
        for each in (following, other):
            assert len((await each())["fleet"]["waiting"]) == len(jobs)
    assert [name for name, _ in inside.store.asked].count("fleet_nodes") == 1
