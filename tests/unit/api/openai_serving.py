"""The OpenAI API of one playground on a real uvicorn, before a scripted API server, without the rest of a gateway."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.door import kube_door
from starforge.adapters.kube.settings import KubeConfig
from starforge.api.playgrounds.openai import OpenAiApi, OpenAiLimits
from starforge.api.transport.callers import Credentials
from starforge.api.transport.http_protocol import GatewayHttpProtocol
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import Playground, PlaygroundState, become_ready, new_clocks
from starforge.domain.playground_spec import PlaygroundDraft, freeze_playground
from starforge.domain.rights import Caller, Role
from starforge.domain.spec import Deadlines, FleetDefaults
from tests.playground_servers import Script

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ID = PlaygroundId("play-abc123")
OUR_TOKEN, THEIR_TOKEN = "token-of-the-service-account", "their-token"
DEFAULTS = FleetDefaults("home", "example/vllm:1", 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 30)
PATIENCE_S = 60


def a_playground() -> Playground:
    spec = freeze_playground(
        PlaygroundDraft("chat", "h200", 1, "org/model", image="example/vllm:1", project="vision"), DEFAULTS
    )
    found = Playground(
        ID, spec, PlaygroundState.STARTING, NOW, Actor("ann", ActorKind.TOKEN), NOW, new_clocks(spec, NOW), revision=1
    )
    return become_ready(found, NOW)


class FakeServices:
    """What the API asks of a gateway: one playground, and a fleet with the real door to a scripted API server."""

    def __init__(self, url: str) -> None:
        api = KubeApi(KubeConfig(namespace="ns", api_server=url, token=OUR_TOKEN))
        store = SimpleNamespace(playgrounds_by_id=lambda ids: {ID: a_playground()} if ID in ids else {})
        fleet = SimpleNamespace(door=lambda: kube_door(api, "ns"))
        self.ports = SimpleNamespace(store=store, fleet=fleet, random=lambda: "f" * 32, now=lambda: NOW)

    async def thread(self, call: Any, *args: Any) -> Any:
        return None if call.__name__ == "note_use" else call(*args)


async def _authenticate(_: Credentials) -> Caller:
    return Caller(Actor("ann", ActorKind.TOKEN), Role.ADMIN, "vision")


@dataclass
class Proxy:
    port: int
    upstream: Script

    def send(self, request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as connection:
            connection.sendall(request)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer

    def status(self, request: bytes) -> int:
        return int(self.send(request).split(b" ")[1])


@contextmanager
def serving(upstream: Script) -> Iterator[Proxy]:
    """The API alone on a real uvicorn, with the gateway's own protocol class."""
    services: Any = FakeServices(upstream.url)
    ready = threading.Event()
    api: list[OpenAiApi] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            api.append(OpenAiApi(services, _authenticate, OpenAiLimits(body_bytes=4096)))
            async with api[0].running():
                await send({"type": "lifespan.startup.complete"})
                ready.set()
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
        else:
            await api[0](scope, receive, send)

    config = uvicorn.Config(app, port=0, log_config=None, http=GatewayHttpProtocol, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        assert ready.wait(PATIENCE_S)
        try:
            yield Proxy(listening.getsockname()[1], upstream)
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)


def request(target: bytes, method: bytes = b"POST", body: bytes = b"{}", *headers: bytes) -> bytes:
    lines = [
        b"%b %b HTTP/1.1" % (method, target), b"Host: forge", b"Connection: close",
        b"Content-Length: %d" % len(body),
        b"Authorization: Bearer %b" % THEIR_TOKEN.encode(), *headers,
    ]  # fmt: skip
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
