"""A real server with a small schema whose resolvers tell the test what happens to them."""

import asyncio
import gc
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NewType

import strawberry
import uvicorn
from starlette.applications import Starlette
from strawberry.schema.config import StrawberryConfig
from websockets.sync.client import ClientConnection, connect

from starforge.api.server import GatewayServer
from starforge.api.transport.app import graphql
from starforge.api.transport.callers import Callers, Credentials, Incoming
from starforge.api.transport.guard import LOOPBACK_HOSTS, guard
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.mutations import RunningMutations
from starforge.api.transport.schema import GatewaySchema
from starforge.api.transport.serving import uvicorn_options
from starforge.domain.errors import Forbidden, NotFound, StoreUnavailable, Unauthenticated

TOKEN = "Bearer good"
PATIENCE_S = 30
"""How long a test waits for what should happen at once."""

Anything = NewType("Anything", object)


@dataclass
class World:
    """What resolvers saw, and what they wait for."""

    started: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    canceled: threading.Event = field(default_factory=threading.Event)
    journal: list[str] = field(default_factory=list)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    async def wait_at_gate(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.started.set()
        try:
            await self._gate.wait()
        except asyncio.CancelledError:
            self.canceled.set()
            raise

    def open_gate(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._gate.set)


@dataclass
class Context:
    world: World
    incoming: Incoming[str]
    loaders_made: int = 0

    def renew(self) -> None:
        self.loaders_made += 1


def world_of(info: strawberry.Info) -> World:
    return info.context.world


@strawberry.type
class Query:
    @strawberry.field
    def echo(self, text: str) -> str:
        return text

    @strawberry.field
    def caller(self, info: strawberry.Info) -> str:
        return f"{info.context.incoming.caller} by {info.context.incoming.transport}"

    @strawberry.field
    def me(self) -> "Query":
        return Query()

    @strawberry.field
    def secret(self) -> str | None:
        raise ValueError("password=hunter2")

    @strawberry.field
    def never(self) -> str:
        raise NotFound("There is no job 'x'. Look for it with `jobs`.")

    @strawberry.field
    def not_json(self) -> Anything:
        return Anything({1, 2})

    @strawberry.field
    async def gate(self, info: strawberry.Info) -> str:
        await world_of(info).wait_at_gate()
        return "through"


@strawberry.type
class Mutation:
    @strawberry.mutation
    async def write(self, info: strawberry.Info) -> str:
        world = world_of(info)
        await world.wait_at_gate()
        world.journal.append("written")
        world.ended.set()
        return "written"


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    @strawberry.subscription
    async def loaders(self, info: strawberry.Info) -> AsyncIterator[int]:
        for _ in range(3):
            yield info.context.loaders_made

    @strawberry.subscription
    async def boom(self) -> AsyncIterator[int]:
        yield 1
        raise ValueError("password=hunter2")

    @strawberry.subscription
    async def gone(self) -> AsyncIterator[int]:
        yield 1
        raise StoreUnavailable("The database can't be reached.", retry_after_s=3, cursor="c7")

    @strawberry.subscription
    async def hang(self, info: strawberry.Info) -> AsyncIterator[int]:
        world = world_of(info)
        try:
            yield 1
            await world.wait_at_gate()
        finally:
            world.ended.set()

    @strawberry.subscription
    async def restless(self, info: strawberry.Info) -> AsyncIterator[int]:
        """Never waits for anything."""
        try:
            while True:
                yield 1
        finally:
            world_of(info).ended.set()

    @strawberry.subscription
    async def flood(self, info: strawberry.Info) -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 100_000
        finally:
            world_of(info).ended.set()


async def authenticate(credentials: Credentials) -> str:
    match credentials.authorization:
        case "Bearer good":
            return "ada"
        case "Bearer viewer":
            raise Forbidden("Your role does not allow this.")
        case "Bearer outage":
            raise StoreUnavailable("The database can't be reached.", retry_after_s=2.5)
        case "Bearer defect":
            raise ValueError("password=hunter2")
        case "Bearer slow":
            await asyncio.Event().wait()
    raise Unauthenticated("This needs a valid token.")


CONFIG = StrawberryConfig(
    scalar_map={Anything: strawberry.scalar(name="Anything", serialize=lambda value: value)},
)
SCHEMA = GatewaySchema(query=Query, mutation=Mutation, subscription=Subscription, config=CONFIG)


@dataclass
class Running:
    port: int
    world: World
    mutations: RunningMutations
    ask_to_stop: Callable[[], None]
    stop: Callable[[], None]
    """Returns when it has stopped."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/graphql"

    def connect(self, **options: Any) -> ClientConnection:
        options = {"subprotocols": ["graphql-transport-ws"], "compression": None, "max_size": None, **options}
        return connect(f"ws://127.0.0.1:{self.port}/graphql", **options)

    @contextmanager
    def acknowledged(self, **options: Any) -> Iterator[ClientConnection]:
        with self.connect(**options) as socket:
            send(socket, type="connection_init", payload={"authorization": TOKEN})
            assert receive(socket) == {"type": "connection_ack"}
            yield socket


def send(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps(message))


def subscribe(socket: ClientConnection, query: str, *, id: str = "1", **payload: Any) -> None:  # noqa: A002
    send(socket, type="subscribe", id=id, payload={"query": query, **payload})


def receive(socket: ClientConnection) -> dict[str, Any]:
    return json.loads(socket.recv(timeout=PATIENCE_S))


class _Server(GatewayServer):
    def __init__(self, config: uvicorn.Config, gateway: Any) -> None:
        super().__init__(config, gateway)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class _Complaints(logging.Handler):
    """Collects what nobody should ever log: lost exceptions, tasks never awaited, applications that crashed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


@contextmanager
def no_complaints() -> Iterator[None]:
    handler = _Complaints()
    loggers = [logging.getLogger(name) for name in ("asyncio", "uvicorn.error", "starforge.api.transport.connection")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
        gc.collect()
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
    assert handler.texts == []


@contextmanager
def serve(limits: TransportLimits | None = None) -> Iterator[Running]:
    limits = limits or TransportLimits()
    world, mutations = World(), RunningMutations()
    gateway = graphql(
        SCHEMA,
        Callers(authenticate),
        make_context=lambda incoming: Context(world, incoming),
        limits=limits,
        mutations=mutations,
    )

    @asynccontextmanager
    async def sweep(_: Starlette) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(gateway.desk.connections.sweep())
        yield
        sweeping.cancel()

    app = guard(
        Starlette(routes=gateway.routes, lifespan=sweep), hosts=LOOPBACK_HOSTS, origins=["http://localhost:5173"]
    )
    options = uvicorn_options(limits)
    config = uvicorn.Config(app, port=0, log_config=None, **options)  # type: ignore[arg-type]
    server = _Server(config, gateway)
    thread = threading.Thread(target=server.run)

    def ask_to_stop() -> None:
        server.should_exit = True

    def stop() -> None:
        ask_to_stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()

    with no_complaints():
        thread.start()
        assert server.ready.wait(PATIENCE_S)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield Running(port, world, mutations, ask_to_stop, stop)
        finally:
            stop()
