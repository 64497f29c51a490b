"""The two ways to a subscription: a WebSocket each, or an event stream each. Both give the payloads of its results."""

import json
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from tests.integration.gateway import TOKEN

SUBPROTOCOL = Subprotocol("graphql-transport-ws")
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Never used: to make one with this machine's roots would take longer than all else that a client does."""
OPEN_S = 20
SMALL_BUFFER = 16 * 1024
"""Bytes that the kernel keeps for a client that is to be seen as slow when it does not read."""
Payload = dict[str, Any]


class Ended(Exception):
    """The connection or the operation is over though nobody asked for it: `why` is a close code, or a word."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Wire(Protocol):
    small: bool
    """Whether the next connection has a small buffer."""

    def results(self, query: str, variables: dict[str, Any]) -> AsyncGenerator[Payload, None]:
        """Until the operation completes; Ended when it is cut off."""
        ...

    def tear(self) -> None:
        """Have the connection reset when it is closed next, as by a machine that is gone."""
        ...


@dataclass
class Socket:
    """graphql-transport-ws."""

    port: int
    attend: Callable[[], Awaitable[object]]
    small: bool = False
    _socket: socket.socket | None = None

    async def results(self, query: str, variables: dict[str, Any]) -> AsyncGenerator[Payload, None]:
        try:
            self._socket = _connected(self.port, small=self.small)
            async with (
                connect(
                    f"ws://127.0.0.1:{self.port}/graphql", sock=self._socket, subprotocols=[SUBPROTOCOL], proxy=None,
                    compression=None, max_size=None, ping_interval=None, open_timeout=OPEN_S, close_timeout=1,
                ) as connection,
                aclosing(self._subscribed(connection, query, variables)) as payloads,
            ):  # fmt: skip
                async for payload in payloads:
                    yield payload
        except ConnectionClosed as closed:
            raise Ended(str(closed.rcvd.code if closed.rcvd else 1006)) from closed
        except (OSError, WebSocketException, TimeoutError) as error:
            raise Ended(f"connect: {type(error).__name__}") from error

    async def _subscribed(
        self, connection: ClientConnection, query: str, variables: dict[str, Any]
    ) -> AsyncGenerator[Payload, None]:
        await _say(connection, type="connection_init", payload={"authorization": f"Bearer {TOKEN}"})
        asked = {"query": query, "variables": variables}
        while True:
            await self.attend()
            message = json.loads(await connection.recv())
            match message["type"]:
                case "connection_ack":
                    await _say(connection, type="subscribe", id="1", payload=asked)
                case "ping":
                    await _say(connection, type="pong")
                case "next":
                    yield message["payload"]
                case "error":
                    yield {"errors": message["payload"]}
                    return
                case "complete":
                    return

    def tear(self) -> None:
        reset_when_closed(self._socket)


async def _say(connection: ClientConnection, **message: Any) -> None:
    await connection.send(json.dumps(message))


@dataclass
class Stream:
    """graphql-sse in its mode of distinct connections."""

    port: int
    attend: Callable[[], Awaitable[object]]
    small: bool = False
    _socket: socket.socket | None = None

    async def results(self, query: str, variables: dict[str, Any]) -> AsyncGenerator[Payload, None]:
        headers = {"authorization": f"Bearer {TOKEN}", "accept": "text/event-stream"}
        body = {"query": query, "variables": variables}
        options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)] if self.small else None
        try:
            async with (
                plain_http(timeout_s=60, options=options) as http,
                http.stream("POST", f"http://127.0.0.1:{self.port}/graphql", json=body, headers=headers) as response,
            ):
                self._socket = response.extensions["network_stream"].get_extra_info("socket")
                if response.status_code != 200:
                    raise Ended(f"status {response.status_code}")
                async with aclosing(self._events(response)) as payloads:
                    async for payload in payloads:
                        yield payload
        except httpx.TransportError as error:
            raise Ended(f"stream: {type(error).__name__}") from error

    async def _events(self, response: httpx.Response) -> AsyncGenerator[Payload, None]:
        kind = ""
        async for line in response.aiter_lines():
            await self.attend()
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
                if kind == "complete":
                    return
            elif name == "data" and kind == "next":
                yield json.loads(value)
        raise Ended("stream: ended")

    def tear(self) -> None:
        reset_when_closed(self._socket)


def plain_http(*, timeout_s: float, options: list[tuple[int, int, int]] | None = None) -> httpx.AsyncClient:
    """A client with a connection of its own; `timeout_s` without a byte are too many."""
    way = httpx.AsyncHTTPTransport(verify=NO_TLS, trust_env=False, socket_options=options)
    return httpx.AsyncClient(transport=way, trust_env=False, timeout=timeout_s)


def _connected(port: int, *, small: bool) -> socket.socket:
    made = socket.socket()
    try:
        if small:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        made.settimeout(OPEN_S)
        made.connect(("127.0.0.1", port))  # on this machine it is taken or refused at once
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def reset_when_closed(there: Any) -> None:
    """Have closing a socket send a reset, as by a machine that knows nothing of it any more."""
    if there is not None and there.fileno() >= 0:
        there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
