"""A whole StarForge in one process: a real gateway, SQLite and Redis, and workers and observer over a fast fleet."""

import asyncio
import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from starforge.adapters.packing.packer import CapsulePacker
from starforge.adapters.settings import load_settings
from starforge.adapters.simulated.fleet import SimulatedFleet
from starforge.adapters.simulated.world import World
from starforge.adapters.wiring import Parts, build, now, prepare
from starforge.api.app import make_gateway
from starforge.api.context import Services
from starforge.api.server import GatewayServer
from starforge.api.transport.desk import Desk
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.serving import uvicorn_options
from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.perform import perform
from starforge.domain.errors import StoreUnavailable
from starforge.domain.names import CommandId
from starforge.domain.ports import Ports
from starforge.workers.watch.loop import watch
from tests.servers import RedisServer, free_port, redis_server

TOKEN = "t0ken-of-the-tests"
PATIENCE_S = 60
"""Only a test that fails waits for so long."""
LIFE_S = 180
"""So does one subscription, whatever bookmarks and pings it gets."""
SPEED = 20.0
_log = logging.getLogger(__name__)


class Refused(Exception):
    """`errors` of an answer or of the end of a subscription."""

    def __init__(self, errors: Sequence[dict[str, Any]]) -> None:
        super().__init__(json.dumps(errors))
        self.errors = errors

    @property
    def code(self) -> str:
        return str(self.errors[0]["extensions"]["code"])

    @property
    def cursor(self) -> str:
        return str(self.errors[0]["extensions"]["cursor"])


class Live:
    """One subscription on a socket of its own."""

    def __init__(self, connection: ClientConnection, query: str, variables: dict[str, Any], token: str) -> None:
        self._socket = connection
        self._until = time.monotonic() + LIFE_S
        self._send(type="connection_init", payload={"authorization": f"Bearer {token}"})
        assert self._receive() == {"type": "connection_ack"}
        self._send(type="subscribe", id="1", payload={"query": query, "variables": variables})

    def _send(self, **message: Any) -> None:
        self._socket.send(json.dumps(message))

    def _receive(self) -> dict[str, Any]:
        while True:
            message: dict[str, Any] = json.loads(self._socket.recv(timeout=max(0, self._until - time.monotonic())))
            if message["type"] != "ping":
                return message
            self._send(type="pong")

    def __iter__(self) -> Iterator[Any]:
        """What the one field of the subscription gives, until it completes; Refused if it ends with an error."""
        while True:
            message = self._receive()
            if message["type"] == "complete":
                return
            if message["type"] == "error":
                raise Refused(message["payload"])
            if "errors" in message["payload"]:
                raise Refused(message["payload"]["errors"])
            yield next(iter(message["payload"]["data"].values()))

    def until(self, wanted: Callable[[Any], bool]) -> list[Any]:
        """Everything up to the first that is wanted, which is the last of the list."""
        seen = []
        for step in self:
            seen.append(step)
            if wanted(step):
                return seen
        raise AssertionError(f"it completed without what was awaited, after {seen[-3:]}")

    def cut(self) -> None:
        """Tear the connection without a close frame, as a machine does that loses its network."""
        self._socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.socket.shutdown(socket.SHUT_RDWR)


@dataclass
class Gateway:
    """A gateway that answers; `services` is its inside."""

    port: int
    services: Services
    desk: Desk[Any]
    parts: Parts
    loop: asyncio.AbstractEventLoop
    token: str = TOKEN

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/graphql"

    def answer(self, query: str, /, **variables: Any) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self.token}"}
        body = {"query": query, "variables": variables}
        answer: dict[str, Any] = httpx.post(self.url, json=body, headers=headers, timeout=PATIENCE_S).json()
        return answer

    def ask(self, query: str, /, **variables: Any) -> Any:
        """The data; Refused if there is any error."""
        answer = self.answer(query, **variables)
        if "errors" in answer:
            raise Refused(answer["errors"])
        return answer["data"]

    @contextmanager
    def live(self, query: str, /, **variables: Any) -> Iterator[Live]:
        url = self.url.replace("http", "ws", 1)
        with connect(url, subprotocols=[Subprotocol("graphql-transport-ws")], compression=None, max_size=None) as there:
            yield Live(there, query, variables, self.token)

    def submit(self, **options: Any) -> str:
        """Submit a job that is taken; its id."""
        payload = self.ask(SUBMIT, input=a_submission(**options))["submitJob"]
        assert payload["userErrors"] == []
        return str(payload["job"]["id"])

    def finished(self, job: str) -> dict[str, Any]:
        """The job once it has ended."""
        query = "subscription($id: ID!) { job(id: $id) { job { id state ended outcome reason { code message } } } }"
        with self.live(query, id=job) as live:
            last: dict[str, Any] = live.until(lambda step: step["job"] and step["job"]["ended"])[-1]["job"]
            return last

    def running(self, job: str) -> None:
        """Return once its command runs."""
        with self.live("subscription($id: ID!) { job(id: $id) { job { state } } }", id=job) as live:
            live.until(lambda step: step["job"] and step["job"]["state"] == "RUNNING")


SUBMIT = """
mutation($input: SubmitJobInput!) {
  submitJob(input: $input) {
    status job { id state revision }
    userErrors { __typename code field message ... on ConflictError { workload { id } } ... on CodeError { path rule } }
  }
}
"""


def a_submission(
    *, name: str = "train", outcome: str = "SUCCEED", seconds: float = 20, key: str | None = None,
    code: dict[str, Any] | None = None, **spec: Any,
) -> dict[str, Any]:  # fmt: skip
    """Input of a job that runs for `seconds` of the fleet's time."""
    wishes = {"SIMULATED_OUTCOME": outcome, "SIMULATED_SECONDS": str(seconds)}
    return {
        "spec": {
            "name": name,
            "command": ["python3", "train.py"],
            "env": [{"name": name, "value": value} for name, value in wishes.items()],
            "pools": [{"name": "main", "series": "h200", "machines": 1, "gpusPerMachine": 1}],
            **spec,
        },
        "code": code or {"files": [{"path": "train.py", "content": "print('hello')\n"}]},
        "idempotencyKey": key,
    }


class _Server(GatewayServer):
    def __init__(self, config: uvicorn.Config, gateway: Any) -> None:
        super().__init__(config, gateway)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.ready.set()


@dataclass
class Platform:
    """Everything but gateways."""

    data: Path
    redis: RedisServer
    cache: Path
    port: int = field(default_factory=free_port)
    _taken: set[int] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)
    _workers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "worker"))

    def settings(self) -> dict[str, str]:
        return {
            "FORGE_DEFAULT_FLEET_KIND": "simulated",
            "FORGE_DATA_DIR": str(self.data),
            "FORGE_REDIS_URL": self.redis.url,
            "FORGE_PORT": str(self.port),
            "FORGE_BOOTSTRAP_TOKEN": TOKEN,
        }

    def parts(self) -> Parts:
        """What a process of its own would have, except that nudges reach our own workers."""
        settings = load_settings(self.settings())
        prepare(settings)
        parts = build(settings)
        parts.ports.objects.prepare()
        defaults, state = parts.ports.fleet.defaults(), self.data / "fast.db"
        fleet = SimulatedFleet(defaults=defaults, state=state, clock=now, world=World(seed=1, speed=SPEED), poll_s=0.05)
        ports = replace(parts.ports, fleet=fleet, nudge=self._nudge, packer=CapsulePacker(self.cache))
        return replace(parts, ports=ports)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Workers, ticks and an observer at work."""
        parts = self.parts()
        self._ports = parts.ports
        threads = [
            threading.Thread(target=self._tick, args=(parts.ports,), name="tick"),
            threading.Thread(target=watch, args=(parts.ports, self._stop), name="observer"),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(PATIENCE_S)
            self._workers.shutdown(wait=True, cancel_futures=True)
            parts.close()

    def rest(self) -> None:
        """From now on nobody takes up work."""
        self._stop.set()

    def _nudge(self, commands: Sequence[CommandId]) -> None:
        for one in commands:
            if not self._stop.is_set():
                self._workers.submit(self._perform, one)

    def _perform(self, command: CommandId) -> None:
        try:
            perform(self._ports, command)
        except StoreUnavailable:
            _log.warning("%s waits for the database", command)

    def _tick(self, ports: Ports) -> None:
        while not self._stop.wait(0.2):
            enforce_deadlines(ports)
            self._nudge(ports.store.due(at=ports.now(), limit=500))

    @contextmanager
    def gateway(self, limits: TransportLimits | None = None, /, **settings: str) -> Iterator[Gateway]:
        """A gateway on `port`, or on a free one while that is taken; stopped as SIGTERM would. `settings` are more
        FORGE_* variables."""
        parts = self.parts()
        parts = replace(parts, settings=load_settings({**self.settings(), **settings}))
        gateway = make_gateway(parts, limits=limits)
        port = free_port() if self.port in self._taken else self.port
        self._taken.add(port)
        options: dict[str, Any] = uvicorn_options(TransportLimits())
        config = uvicorn.Config(gateway.asgi, port=port, log_config=None, timeout_graceful_shutdown=20, **options)
        server = _Server(config, gateway)
        thread = threading.Thread(target=server.run, name="gateway", daemon=True)
        thread.start()
        try:
            assert server.ready.wait(PATIENCE_S)
            yield Gateway(port, gateway.services, gateway.desk, parts, server.loop)
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)
            parts.close()
            self._taken.discard(port)
        assert not thread.is_alive()


@contextmanager
def idle_platform(data: Path, cache: Path) -> Iterator[Platform]:
    """A platform whose workers are away: what is submitted stays so."""
    data.mkdir(parents=True, exist_ok=True)
    with redis_server(data) as redis:
        there = Platform(data, redis, cache)
        there.rest()
        yield there


@contextmanager
def platform(data: Path, cache: Path) -> Iterator[Platform]:
    """A platform at work; `cache` may be shared by tests."""
    data.mkdir(parents=True, exist_ok=True)
    with redis_server(data) as redis:
        there = Platform(data, redis, cache)
        with there.at_work():
            yield there


__all__ = [
    "PATIENCE_S", "SUBMIT", "TOKEN", "ConnectionClosed", "Gateway", "Live", "Platform", "Refused",
    "a_submission", "idle_platform", "platform",
]  # fmt: skip
