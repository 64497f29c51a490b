"""A gateway as a process of its own that gets SIGTERM while much is under way: nothing is cut, lost or done twice."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.gateway import PATIENCE_S, SUBMIT, TOKEN, a_submission, idle_platform
from tests.integration.soak.documents import ALL_EVENTS
from tests.integration.soak.site import GatewayProcess, Site, site_settings
from tests.integration.soak.subscriber import until
from tests.integration.soak.wires import Ended, Socket, Stream, Wire, plain_http

pytestmark = pytest.mark.anyio
COUNT = 40
KEYS = [f"key-{number}" for number in range(COUNT)]
THERE = """
query($keys: [String!]!) { jobs(filter: { idempotencyKeys: $keys }, first: 100) { nodes { id idempotencyKey } } }
"""
Told = tuple[str, str]
Submits = dict[str, "asyncio.Task[Told | None]"]


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Site]:
    """A gateway that runs, and nobody who works on what is submitted."""
    with idle_platform(tmp_path / "platform", tmp_path / "runner") as platform:
        gateway = GatewayProcess(platform.port, site_settings(platform), tmp_path / "gateway.log")
        try:
            gateway.start()
            yield Site(gateway, platform)
        finally:
            gateway.stop()


async def submit(http: httpx.AsyncClient, site: Site, key: str) -> Told | None:
    """Status and job; None if there was no answer, or one that says to come again."""
    body = {"query": SUBMIT, "variables": {"input": a_submission(name=key, key=key)}}
    headers = {"authorization": f"Bearer {TOKEN}"}
    try:
        answer = await http.post(f"{site.gateway.url}/graphql", json=body, headers=headers)
    except httpx.TransportError:
        return None
    if answer.status_code == 503:
        return None
    payload = answer.json()["data"]["submitJob"]
    return payload["status"], payload["job"]["id"]


@asynccontextmanager
async def submitting(site: Site, keys: Sequence[str]) -> AsyncIterator[Submits]:
    """All of them at once, each over a connection of its own; they have ended after the block."""
    async with plain_http(timeout_s=PATIENCE_S) as http, asyncio.TaskGroup() as group:
        yield {key: group.create_task(submit(http, site, key)) for key in keys}


async def attend() -> None:
    """A reader that never stops."""


async def follow(wire: Wire, opened: asyncio.Event) -> str:
    """Why a subscription to all events is over."""
    try:
        async with aclosing(wire.results(ALL_EVENTS, {})) as payloads:
            async for payload in payloads:
                assert "errors" not in payload, payload
                opened.set()
    except Ended as ended:
        return ended.why
    return "complete"


@asynccontextmanager
async def following(site: Site) -> AsyncIterator[Sequence["asyncio.Task[str]"]]:
    """A subscription over a socket and one over an event stream, both open."""
    wires: list[Wire] = [Socket(site.gateway.port, attend), Stream(site.gateway.port, attend)]
    opened = [asyncio.Event() for _ in wires]
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        tasks = [group.create_task(follow(wire, event)) for wire, event in zip(wires, opened, strict=True)]
        for event in opened:
            await event.wait()
        yield tasks


@contextmanager
def database_held(site: Site) -> Iterator[None]:
    """Nobody else can write into the database within the block."""
    with closing(sqlite3.connect(site.platform.data / "starforge.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


async def in_flight(site: Site, count: int) -> None:
    """Return once the gateway works on so many requests."""

    async def enough() -> bool:
        return (await site.metrics())["starforge_requests_in_flight"] >= count

    await until(enough, f"The gateway works on {count} requests")


async def ended(site: Site) -> int:
    """The exit code, once there is one; what it logged has no complaint."""
    assert site.gateway.process is not None
    code = await asyncio.to_thread(site.gateway.process.wait, PATIENCE_S)
    assert site.gateway.complaints() == []
    return code


async def jobs(site: Site) -> dict[str, str]:
    """Ids by key; there is one job of each."""
    nodes = (await site.answer(THERE, keys=KEYS))["jobs"]["nodes"]
    found = {node["idempotencyKey"]: node["id"] for node in nodes}
    assert len(nodes) == len(found)
    return found


async def assert_each_once(site: Site, told: Mapping[str, Told | None]) -> None:
    """Of submits that were told so: another gateway replays the answered ones and makes the others, one job each."""
    await asyncio.to_thread(site.gateway.start)
    answered = {key: one[1] for key, one in told.items() if one}
    assert await jobs(site) == answered, "a job was made, and nobody told; or told, and not made"
    async with submitting(site, KEYS) as tasks:
        pass
    again = {key: task.result() for key, task in tasks.items()}
    there = await jobs(site)
    assert again == {key: ("REPLAYED" if key in answered else "CREATED", there[key]) for key in KEYS}
    assert answered.items() <= there.items()


def results(submits: Submits) -> dict[str, Told | None]:
    return {key: task.result() for key, task in submits.items()}


async def test_what_is_in_flight_is_answered_while_subscribers_leave_at_once(there: Site) -> None:
    early, late = KEYS[: COUNT // 2], KEYS[COUNT // 2 :]
    async with following(there) as subscriptions, AsyncExitStack() as waiting:
        with database_held(there):
            begun = await waiting.enter_async_context(submitting(there, early))
            await in_flight(there, len(early))
            there.gateway.terminate()
            whys = [await task for task in subscriptions]
            async with submitting(there, late) as refused:
                pass
            assert not any(task.done() for task in begun.values())
    assert whys == ["1012", "stream: ended"]
    assert await ended(there) == 0
    assert {one and one[0] for one in results(begun).values()} == {"CREATED"}
    assert set(results(refused).values()) == {None}
    await assert_each_once(there, results(begun) | results(refused))


async def test_a_grace_that_runs_out_ends_what_hangs(there: Site) -> None:
    """The database answers nobody for longer than the grace: the gateway ends all the same, and a key makes one job."""
    there.gateway.stop()
    there.gateway.env["FORGE_SHUTDOWN_GRACE_S"] = "1"
    there.gateway.start()
    with database_held(there):
        async with submitting(there, KEYS) as submits:
            await in_flight(there, COUNT)
            there.gateway.terminate()
            assert there.gateway.process is not None
            code = await asyncio.to_thread(there.gateway.process.wait, PATIENCE_S)
    assert code == 1, "it says that it had to leave something behind"
    assert set(results(submits).values()) == {None}
    await assert_each_once(there, results(submits))


async def test_sigterm_amid_a_burst_of_submits(there: Site) -> None:
    """Those that came too late are not answered, and made by whoever is asked next."""
    async with following(there) as subscriptions:
        async with submitting(there, KEYS) as submits:
            await asyncio.wait(submits.values(), return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE_S)
            there.gateway.terminate()
        assert [await task for task in subscriptions] == ["1012", "stream: ended"]
    assert await ended(there) == 0
    assert any(results(submits).values())
    await assert_each_once(there, results(submits))
