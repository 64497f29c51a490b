"""A gateway that answers by a script: real HTTP and WebSocket, and every document is run against schema.graphql."""

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from graphql import ExecutionResult, GraphQLResolveInfo, build_schema, graphql_sync, parse, subscribe
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

SCHEMA = build_schema((Path(__file__).parents[2] / "schema.graphql").read_text())
PATIENCE_S = 30
TOKEN = "good"
Json = dict[str, Any]


class Cut(Exception):
    """Raised by a scripted subscription: the connection is closed with `code`, or torn without a word if None."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Ended(Exception):
    """Raised by a scripted subscription: it ends with this error."""

    def __init__(self, code: str, **extensions: object) -> None:
        super().__init__(code)
        self.errors = [{"message": f"Ended by {code}.", "extensions": {"code": code, **extensions}}]


@dataclass
class Script:
    """Values of root fields, or functions `(**arguments)` that give them; `seen` has the arguments of each.

    Each of `instead` is answered once, in place of the script.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    seen: list[tuple[str, Json]] = field(default_factory=list)
    uploads: dict[str, bytes] = field(default_factory=dict)
    instead: list[Response] = field(default_factory=list)
    upload_headers: list[Mapping[str, str]] = field(default_factory=list)
    url: str = ""

    def arguments(self, name: str) -> list[Json]:
        return [arguments for called, arguments in self.seen if called == name]

    def root(self) -> Json:
        return {name: self._field(name, value) for name, value in self.fields.items()}

    def _field(self, name: str, value: Any) -> Callable[..., Any]:
        def resolve(**arguments: Any) -> Any:
            self.seen.append((name, arguments))
            return value(**arguments) if callable(value) else value

        return resolve


def _resolve(source: Any, info: GraphQLResolveInfo[Any], /, **arguments: Any) -> Any:
    value = source.get(info.field_name)
    return value(**arguments) if callable(value) else value


class _Api:
    def __init__(self, script: Script) -> None:
        self._script = script

    async def post(self, request: Request) -> Response:
        if request.headers.get("authorization", f"Bearer {TOKEN}") != f"Bearer {TOKEN}":
            error = {"message": "This needs a valid token.", "extensions": {"code": "UNAUTHENTICATED"}}
            return JSONResponse({"errors": [error]}, 401)
        asked = await request.json()
        if self._script.instead:
            return self._script.instead.pop(0)
        root, variables = self._script.root(), asked["variables"]
        result = graphql_sync(SCHEMA, asked["query"], root, variable_values=variables, field_resolver=_resolve)
        assert not result.errors, result.errors
        return JSONResponse({"data": result.data})

    async def put(self, request: Request) -> Response:
        self._script.upload_headers.append(request.headers)
        self._script.uploads[request.path_params["name"]] = await request.body()
        return Response(status_code=200)

    async def socket(self, websocket: WebSocket) -> None:
        await websocket.accept(subprotocol="graphql-transport-ws")
        try:
            await self._serve(websocket)
        except Cut as cut:
            if cut.code is not None:
                await websocket.close(cut.code)
            else:
                _tear(websocket)
        except WebSocketDisconnect:
            return

    async def _serve(self, websocket: WebSocket) -> None:
        init = await websocket.receive_json()
        if init["payload"].get("authorization", f"Bearer {TOKEN}") != f"Bearer {TOKEN}":
            raise Cut(4403)
        await websocket.send_json({"type": "connection_ack"})
        await websocket.send_json({"type": "ping"})
        first, second = await websocket.receive_json(), await websocket.receive_json()
        asked = first if first["type"] == "subscribe" else second
        assert {first["type"], second["type"]} == {"subscribe", "pong"}
        try:
            async for result in self._results(asked["payload"]):
                assert not result.errors, result.errors
                await websocket.send_json({"id": asked["id"], "type": "next", "payload": {"data": result.data}})
            await websocket.send_json({"id": asked["id"], "type": "complete"})
        except Ended as ended:
            await websocket.send_json({"id": asked["id"], "type": "error", "payload": ended.errors})
        await websocket.receive()

    async def _results(self, payload: Json) -> AsyncIterator[ExecutionResult]:
        found = subscribe(
            SCHEMA, parse(payload["query"]), self._script.root(), variable_values=payload["variables"],
            field_resolver=_resolve, subscribe_field_resolver=_resolve,
        )  # fmt: skip
        found = await found if inspect.isawaitable(found) else found
        assert not isinstance(found, ExecutionResult), found.errors
        async for result in found:
            yield result


def _tear(websocket: WebSocket) -> None:
    """Ends the TCP connection as a lost one does: with no close frame."""
    protocol = websocket._send.__self__  # type: ignore[attr-defined]
    while not hasattr(protocol, "transport"):
        protocol = protocol.__self__
    protocol.transport.abort()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serve(script: Script) -> Iterator[Script]:
    """The gateway on a free port; its `url` is set."""
    api = _Api(script)
    routes = [
        Route("/graphql", api.post, methods=["POST"]),
        Route("/upload/{name}", api.put, methods=["PUT"]),
        WebSocketRoute("/graphql", api.socket),
    ]
    config = uvicorn.Config(Starlette(routes=routes), port=0, log_config=None, lifespan="off", ws="websockets-sansio")
    server = _Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert server.ready.wait(PATIENCE_S)
        script.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        yield script
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


async def stream(*steps: Any) -> AsyncIterator[Json]:
    """Each step in turn; an exception is raised where it stands."""
    for step in steps:
        if isinstance(step, Exception):
            raise step
        yield step
        await asyncio.sleep(0)


def json_lines(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines()]
