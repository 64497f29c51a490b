"""GraphQL over HTTP.

By the draft of graphql-over-http, with its two media types. A response with `data` has status 200. What was refused
has the status of its code; to a client that takes `application/json` only, which can't trust another status, 200 if
its request was well formed.
"""

import asyncio
from dataclasses import dataclass
from typing import Generic

from graphql import OperationType
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from starforge.api.transport.body import late_body, read_get, read_post
from starforge.api.transport.callers import CallerT, Credentials, Incoming, Transport
from starforge.api.transport.codes import REQUEST_ERRORS, ErrorCode
from starforge.api.transport.desk import Desk
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Prepared
from starforge.api.transport.front import HEADERS, NO_STORE, Ready, RequestKey, request_key, whole_body
from starforge.api.transport.graphiql import console_page
from starforge.api.transport.identify import identify
from starforge.api.transport.negotiation import MediaType, negotiate, prefers_page, wants_events
from starforge.api.transport.responses import refusal, reply
from starforge.api.transport.sse import EventStream

METHODS = "GET, POST"


@dataclass(frozen=True)
class _Asked(Generic[CallerT]):
    caller: CallerT
    operation: Prepared


class HttpEndpoint(Generic[CallerT]):
    """An ASGI application for the HTTP scope."""

    def __init__(self, desk: Desk[CallerT], *, console: bool) -> None:
        self._desk = desk
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self._desk.limits.body_timeout_s):
                body, receive = (b"", receive) if scope["method"] == "GET" else await whole_body(receive)
        except TimeoutError:
            await refusal(late_body(self._desk.limits), MediaType.JSON)(scope, receive, send)
            return
        key = _key(scope, body) if body is not None else None
        ready = self._desk.front.ready(key) if key is not None else None
        if ready is not None:
            await _send_ready(ready, scope, send)
            return
        request = Request(scope, receive)
        try:
            response = await self._respond(request, key)
        except asyncio.CancelledError:
            if not self._desk.draining.is_set():
                raise
            response = refusal(
                _ended(), negotiate(request.headers.get("accept")) or MediaType.JSON
            )  # the grace is over
        await response(scope, receive, send)

    async def _respond(self, request: Request, key: RequestKey | None) -> ASGIApp:
        accept = request.headers.get("accept")
        if self._console and request.method == "GET" and prefers_page(accept):
            return console_page(request.url.netloc)
        if wants_events(accept):
            return await self._stream(request)
        media = negotiate(accept)
        try:
            if media is None:
                raise _not_acceptable()
            return await self._answer(request, media, key)
        except Exception as error:  # noqa: BLE001  because_of logs what is not meant for the client
            return refusal(RequestRefused.because_of(error), media or MediaType.JSON)

    async def _answer(self, request: Request, media: MediaType, key: RequestKey | None) -> ASGIApp:
        asked = await self._asked(request)
        if asked.operation.kind is OperationType.SUBSCRIPTION:
            sentence = "A subscription needs `Accept: text/event-stream`, or a WebSocket (graphql-transport-ws)."
            raise RequestRefused(ErrorCode.BAD_REQUEST, sentence)
        executor = self._desk.executor
        with self._desk.in_flight():
            payload = await executor.answer(asked.operation, Incoming(asked.caller, Transport.HTTP))
        answer_key = asked.operation.answer_key
        kept = executor.answers.get(answer_key) if answer_key is not None else None
        if kept is None:
            return reply(200, payload, media)
        if key is not None:
            self._desk.front.remember(key, asked.caller, asked.operation, media)
        return _ReadyResponse(Ready(kept, executor.extensions(asked.operation), media))

    async def _stream(self, request: Request) -> ASGIApp:
        """What was refused because of the document comes as an event, as graphql-sse has it; the rest by status."""
        try:
            asked = await self._asked(request)
        except RequestRefused as refused:
            if refused.code in REQUEST_ERRORS:
                return EventStream.refusal(refused)
            return refusal(refused, MediaType.JSON)
        except Exception as error:  # noqa: BLE001  because_of logs what is not meant for the client
            return refusal(RequestRefused.because_of(error), MediaType.JSON)
        return EventStream(self._desk, asked.operation, Incoming(asked.caller, Transport.SSE))

    async def _asked(self, request: Request) -> _Asked[CallerT]:
        if request.method not in METHODS.split(", "):
            raise _wrong_method(f"{request.method} is not for GraphQL: use POST, or GET for a query.", allow=METHODS)
        caller = await self._caller(request)
        is_get = request.method == "GET"
        read = read_get(request) if is_get else await read_post(request, self._desk.limits)
        operation = await self._desk.executor.prepare(read, caller)
        if operation.kind is OperationType.MUTATION and is_get:
            raise _wrong_method("A GET runs queries only: send a mutation by POST.", allow="POST")
        return _Asked(caller, operation)

    async def _caller(self, request: Request) -> CallerT:
        host = request.client.host if request.client else None
        credentials = Credentials(request.headers.get("authorization"), host)
        timeout_s = self._desk.limits.authentication_timeout_s
        return await identify(self._desk.callers.authenticate, credentials, timeout_s=timeout_s)


class _ReadyResponse:
    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _send_ready(self._ready, scope, send)


async def _send_ready(ready: Ready, scope: Scope, send: Send) -> None:
    """A GET may be answered with 304: what the client has is still true."""
    headers, body, status = HEADERS[ready.media], b"", 200
    etag = ready.answer.etag.encode()
    if scope["method"] == "GET":
        headers = [*headers, (b"etag", etag), (b"cache-control", b"private, no-cache")]
        status = 304 if _holds(scope, etag) else 200
    else:
        headers = [*headers, NO_STORE]
    if status == 200:
        body = ready.answer.body(ready.extensions)
        headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _holds(scope: Scope, etag: bytes) -> bool:
    given = next((value for name, value in scope["headers"] if name == b"if-none-match"), b"")
    return given.strip() == b"*" or etag in (one.strip() for one in given.split(b","))


def _key(scope: Scope, body: bytes) -> RequestKey:
    return request_key(scope["method"].encode(), scope["query_string"], scope["client"], scope["headers"], body)


def _wrong_method(sentence: str, *, allow: str) -> RequestRefused:
    return RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=405, headers={"allow": allow})


def _ended() -> RequestRefused:
    sentence = "This gateway had to end before the answer was there: ask again, a mutation with its idempotency key."
    return RequestRefused(ErrorCode.UNAVAILABLE, sentence)


def _not_acceptable() -> RequestRefused:
    sentence = (
        f"Accept {MediaType.GRAPHQL}, {MediaType.JSON} or, for a stream, text/event-stream: there is nothing else."
    )
    return RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=406)
