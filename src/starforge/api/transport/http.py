"""GraphQL over HTTP.

By the draft of graphql-over-http, with its two media types. A response with `data` has status 200. What was refused
has the status of its code; to a client that takes `application/json` only, which can't trust another status, 200 if
its request was well formed.
"""

from typing import Generic

from graphql import OperationType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from starforge.api.transport.body import read_get, read_post
from starforge.api.transport.callers import Authenticate, CallerT, Credentials, Incoming, Transport
from starforge.api.transport.codes import REQUEST_ERRORS, ErrorCode
from starforge.api.transport.encoding import encode_json
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Executor, Operation
from starforge.api.transport.graphiql import console_page
from starforge.api.transport.identify import identify
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.negotiation import MediaType, negotiate, prefers_page

METHODS = "GET, POST"


class HttpEndpoint(Generic[CallerT]):
    """An ASGI application for the HTTP scope."""

    def __init__(
        self,
        *,
        executor: Executor[CallerT],
        authenticate: Authenticate[CallerT],
        limits: TransportLimits,
        console: bool,
    ) -> None:
        self._executor = executor
        self._authenticate = authenticate
        self._limits = limits
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        accept = request.headers.get("accept")
        if self._console and request.method == "GET" and prefers_page(accept):
            return console_page(request.url.netloc)
        media = negotiate(accept)
        try:
            if media is None:
                raise _not_acceptable()
            return _reply(200, await self._answer(request), media)
        except Exception as error:  # noqa: BLE001  because_of logs what is not meant for the client
            return _refusal(RequestRefused.because_of(error), media or MediaType.JSON)

    async def _answer(self, request: Request) -> str:
        if request.method not in METHODS.split(", "):
            raise _wrong_method(f"{request.method} is not for GraphQL: use POST, or GET for a query.", allow=METHODS)
        caller = await self._caller(request)
        is_get = request.method == "GET"
        asked = read_get(request) if is_get else await read_post(request, self._limits)
        operation = await self._executor.prepare(asked)
        _demand_runnable(operation, is_get=is_get)
        incoming = Incoming(caller, Transport.HTTP, dict(request.headers))
        return encode_json(await self._executor.answer(operation, incoming))

    async def _caller(self, request: Request) -> CallerT:
        host = request.client.host if request.client else None
        credentials = Credentials(request.headers.get("authorization"), host)
        return await identify(self._authenticate, credentials, timeout_s=self._limits.authentication_timeout_s)


def _demand_runnable(operation: Operation, *, is_get: bool) -> None:
    if operation.kind is OperationType.SUBSCRIPTION:
        sentence = "A subscription needs a WebSocket at this address, with the subprotocol graphql-transport-ws."
        raise RequestRefused(ErrorCode.BAD_REQUEST, sentence)
    if operation.kind is OperationType.MUTATION and is_get:
        raise _wrong_method("A GET runs queries only: send a mutation by POST.", allow="POST")


def _wrong_method(sentence: str, *, allow: str) -> RequestRefused:
    return RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=405, headers={"allow": allow})


def _not_acceptable() -> RequestRefused:
    sentence = f"Accept {MediaType.GRAPHQL} or {MediaType.JSON}: there is nothing else."
    return RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=406)


def _refusal(refused: RequestRefused, media: MediaType) -> Response:
    lenient = media is MediaType.JSON and refused.code in REQUEST_ERRORS
    response = _reply(200 if lenient else refused.status, encode_json(refused.body()), media)
    response.headers.update(refused.headers)
    if refused.status == 401:
        response.headers["www-authenticate"] = 'Bearer realm="starforge"'
    return response


def _reply(status: int, body: str, media: MediaType) -> Response:
    headers = {"content-type": f"{media}; charset=utf-8", "cache-control": "no-store", "vary": "accept"}
    return Response(body, status, headers)
