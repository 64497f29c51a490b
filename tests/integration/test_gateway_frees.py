"""What a gateway holds for a client goes with the client, however that goes; and what is done leaves nothing behind."""

import asyncio
import gc
import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.integration.gateway import PATIENCE_S, TOKEN, Gateway, Platform, idle_platform, platform
from tests.integration.soak.documents import EVENTS, JOB, JOBS, LOGS
from tests.integration.soak.site import GatewayProcess, site_settings
from tests.integration.soak.wires import SUBPROTOCOL, reset_when_closed

OPERATIONS = 100_000
WARM_UP = 5_000
AT_ONCE = 50
GROWTH_MAX = 16 * 1024 * 1024
"""Bytes that the allocator may take and keep; a leak of 200 bytes an operation would be more."""


@pytest.fixture
def there(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with platform(tmp_path / "platform", tmp_path_factory.getbasetemp() / "runner") as running:
        yield running


@dataclass(frozen=True)
class Held:
    """What a gateway holds for subscribers."""

    tasks: int
    groups: int
    members: int
    listeners: int
    sockets: int
    streams: int


def on_loop(gateway: Gateway, call: Callable[[], Any]) -> Any:
    """What `call` gives on the gateway's event loop."""
    answer: Future[Any] = Future()
    gateway.loop.call_soon_threadsafe(lambda: answer.set_result(call()))
    return answer.result(PATIENCE_S)


def held(gateway: Gateway) -> Held:
    def look() -> Held:
        desk = gateway.desk
        connections = desk.connections
        return Held(
            len([task for task in asyncio.all_tasks() if not task.done()]), len(desk.groups), desk.groups.members,
            gateway.services.hub.listeners, connections.sockets, connections.streams,
        )  # fmt: skip

    found: Held = on_loop(gateway, look)
    return found


def until(gateway: Gateway, wanted: Callable[[Held], bool]) -> float:
    """Seconds until the gateway holds what is wanted; nothing tells us when, so it is asked for."""
    began = time.monotonic()
    while not wanted(now := held(gateway)):
        assert time.monotonic() - began < PATIENCE_S, (now, on_loop(gateway, lambda: list(asyncio.all_tasks())))
        time.sleep(0.01)
    return time.monotonic() - began


def settled(gateway: Gateway) -> Held:
    """What it holds when nobody is there: once a query was answered, so that all its threads and tasks have begun."""
    gateway.ask("{ feed { cursor } }")
    until(gateway, lambda now: now.sockets == now.streams == now.groups == 0)
    seen = [held(gateway) for _ in range(20)]
    return max(seen, key=lambda one: one.tasks)


def subscriptions(job: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, document and variables of one of each kind."""
    return [("events", EVENTS, {}), ("job", JOB, {"id": job}), ("jobs", JOBS, {}), ("jobLogs", LOGS, {"id": job})]


def test_a_reset_socket_frees_all_at_once(there: Platform, caplog: pytest.LogCaptureFixture) -> None:
    with there.gateway() as gateway:
        job = gateway.submit(outcome="FOREVER")
        gateway.running(job)
        before = settled(gateway)
        for name, query, variables in subscriptions(job):
            with gateway.live(query, **variables) as live:
                next(iter(live))
                until(gateway, lambda now: now.listeners == before.listeners + 1)
                live.cut()
                tell(f"socket, {name}", until(gateway, lambda now: is_as(now, before)))
    assert complaints(caplog) == []


def test_a_reset_event_stream_frees_all_at_once(there: Platform, caplog: pytest.LogCaptureFixture) -> None:
    with there.gateway() as gateway:
        job = gateway.submit(outcome="FOREVER")
        gateway.running(job)
        before = settled(gateway)
        for name, query, variables in subscriptions(job):
            body = {"query": query, "variables": variables}
            headers = {"authorization": f"Bearer {TOKEN}", "accept": "text/event-stream"}
            with httpx.Client(timeout=PATIENCE_S) as http:
                with http.stream("POST", gateway.url, json=body, headers=headers) as response:
                    lines = response.iter_lines()  # held, as httpx ends the stream with its iterator
                    assert next(lines) == "event: next"
                    until(gateway, lambda now: now.listeners == before.listeners + 1)
                    reset_when_closed(response.extensions["network_stream"].get_extra_info("socket"))
                tell(f"event stream, {name}", until(gateway, lambda now: is_as(now, before)))
    assert complaints(caplog) == []


def test_many_that_are_reset_while_they_open_leave_nothing(there: Platform, caplog: pytest.LogCaptureFixture) -> None:
    """Cut before anything was told, or as soon as something was."""
    with there.gateway() as gateway:
        job = gateway.submit(outcome="FOREVER")
        gateway.running(job)
        before = settled(gateway)
        for number in range(40):
            _, query, variables = subscriptions(job)[number % 4]
            with gateway.live(query, **variables) as live:
                if number % 8 >= 4:
                    next(iter(live))
                live.cut()
        tell("40 sockets", until(gateway, lambda now: is_as(now, before)))
    assert complaints(caplog) == []


def is_as(now: Held, before: Held) -> bool:
    return now.tasks <= before.tasks and (now.groups, now.members, now.listeners, now.sockets, now.streams) == (
        before.groups, before.members, before.listeners, before.sockets, before.streams
    )  # fmt: skip


def tell(what: str, seconds: float) -> None:
    sys.stderr.write(f"  {what}: all freed after {seconds * 1000:.0f} ms\n")


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged as an error; a task whose failure nobody saw says so when it is collected."""
    gc.collect()
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.timeout(900)
def test_many_short_operations_on_one_socket_leave_memory_flat(tmp_path: Path) -> None:
    with idle_platform(tmp_path / "data", tmp_path / "runner") as nobody:
        gateway = GatewayProcess(nobody.port, site_settings(nobody), tmp_path / "gateway.log")
        try:
            gateway.start()
            before, after, seconds = asyncio.run(many_operations(gateway))
        finally:
            gateway.stop()
    growth = after - before
    sys.stderr.write(
        f"  {OPERATIONS / seconds:.0f} operations/s; {growth / 1024:.0f} KiB more than {before >> 20} MiB\n"
    )
    assert growth < GROWTH_MAX
    assert gateway.complaints() == []


async def many_operations(gateway: GatewayProcess) -> tuple[int, int, float]:
    """(bytes resident after the first operations, and after all of them, seconds)."""
    url = f"ws://127.0.0.1:{gateway.port}/graphql"
    async with connect(url, subprotocols=[SUBPROTOCOL], compression=None, ping_interval=None, proxy=None) as socket:
        await socket.send(json.dumps({"type": "connection_init", "payload": {"authorization": f"Bearer {TOKEN}"}}))
        assert json.loads(await socket.recv()) == {"type": "connection_ack"}
        await operations(socket, WARM_UP)
        before, began = gateway.rss(), time.monotonic()
        await operations(socket, OPERATIONS)
        return before, gateway.rss(), time.monotonic() - began


async def operations(socket: Any, count: int) -> None:
    """So many, AT_ONCE at the same time; each is answered and completed, in any order."""
    begun, waiting = 0, dict[str, str]()
    while begun < count or waiting:
        while begun < count and len(waiting) < AT_ONCE:
            begun += 1
            waiting[str(begun)] = "next"
            asked = {"id": str(begun), "type": "subscribe", "payload": {"query": "{__typename}"}}
            await socket.send(json.dumps(asked))
        message = json.loads(await socket.recv())
        if message["type"] == "ping":
            await socket.send('{"type":"pong"}')
            continue
        assert message["type"] == waiting.pop(message["id"])
        if message["type"] == "next":
            assert message["payload"]["data"] == {"__typename": "Query"}
            waiting[message["id"]] = "complete"
