"""A platform whose playgrounds are served by whatever a test wants: a script, or tiny-openai as a process."""

import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from starforge.adapters.local.fleet import LocalFleet
from starforge.adapters.server_http import asked, client
from starforge.adapters.simulated.fleet import SimulatedFleet
from starforge.adapters.simulated.world import World
from starforge.adapters.wiring import Parts, now
from starforge.domain.playground import Playground
from starforge.domain.playground_door import Door, ServerAnswer, ServerRequest
from tests.integration.gateway import SPEED, Gateway, Platform
from tests.servers import redis_server

TINY = Path(__file__).parents[2] / "examples" / "tiny-openai" / "server.py"
CREATE = """mutation($input: CreatePlaygroundInput!) { createPlayground(input: $input) {
  playground { id } userErrors { message } } }"""
STATES = "subscription($id: ID!) { playground(id: $id) { playground { state endpoint reason { message } } } }"
USED = """subscription($id: ID!) { playground(id: $id) { playground { lastUsedAt usage {
  requests activeRequests promptTokens completionTokens firstTokenSeconds } } } }"""


class ScriptedFleet(SimulatedFleet):
    """Simulated playgrounds that are all served at `url`."""

    url = ""

    def door(self) -> AbstractAsyncContextManager[Door]:
        return _scripted_door(self.url)


class ScriptedDoor:
    def __init__(self, http: Any, url: str) -> None:
        self._http, self._url = http, url

    @asynccontextmanager
    async def ask(self, playground: Playground, request: ServerRequest) -> AsyncIterator[ServerAnswer]:
        async with asked(self._http, self._url, request, to="The server") as answer:
            yield answer


@asynccontextmanager
async def _scripted_door(url: str) -> AsyncIterator[Door]:
    async with client(kept=0) as http:
        yield ScriptedDoor(http, url)


class PlaygroundPlatform(Platform):
    """`make_fleet` gets the parts that a platform has otherwise."""

    make_fleet: Callable[[Parts], Any]

    def parts(self) -> Parts:
        parts = super().parts()
        return replace(parts, ports=replace(parts.ports, fleet=self.make_fleet(parts)))


@contextmanager
def playground_platform(data: Path, make_fleet: Callable[[Path, Parts], Any]) -> Iterator[Platform]:
    data.mkdir(parents=True, exist_ok=True)
    with redis_server(data) as redis:
        there = PlaygroundPlatform(data, redis, data / "cache")
        there.make_fleet = lambda parts: make_fleet(data, parts)
        with there.at_work():
            yield there


def scripted_fleet(url: str) -> Callable[[Path, Parts], SimulatedFleet]:
    def make(data: Path, parts: Parts) -> SimulatedFleet:
        defaults, world = parts.ports.fleet.defaults(), World(seed=1, speed=SPEED)
        fleet = ScriptedFleet(defaults=defaults, state=data / "scripted.db", clock=now, world=world, poll_s=0.05)
        fleet.url = url
        return fleet

    return make


def tiny_fleet(*flags: str) -> Callable[[Path, Parts], LocalFleet]:
    command = shlex.join([sys.executable, str(TINY), "serve", *flags])

    def make(data: Path, parts: Parts) -> LocalFleet:
        defaults = parts.ports.fleet.defaults()
        return LocalFleet(data / "runs", gpus={"h200": 8}, defaults=defaults, playground_command=command)

    return make


def a_ready_playground(gateway: Gateway, **given: Any) -> str:
    """Its base address."""
    asked = {"name": "chat", "model": "org/tiny", "series": "h200", "gpus": 1, **given}
    payload = gateway.ask(CREATE, input=asked)["createPlayground"]
    assert payload["userErrors"] == []
    with gateway.live(STATES, id=payload["playground"]["id"]) as live:
        last = live.until(lambda step: (step["playground"] or {}).get("state") in ("READY", "FAILED"))[-1]
    assert last["playground"]["state"] == "READY", last["playground"]["reason"]
    path = f"/playgrounds/{payload['playground']['id']}/v1"
    assert last["playground"]["endpoint"].endswith(path)
    return f"http://127.0.0.1:{gateway.port}{path}"


def used(gateway: Gateway, address: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """What it was used for, once that is what is wanted."""
    with gateway.live(USED, id=address.split("/")[-2]) as live:
        last = live.until(lambda step: step["playground"] and wanted(step["playground"]["usage"]))[-1]["playground"]
        return {**last["usage"], "lastUsedAt": last["lastUsedAt"]}
