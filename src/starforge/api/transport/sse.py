"""GraphQL over server-sent events, by the protocol of graphql-sse in its mode of distinct connections."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Generic

from graphql import OperationType
from starlette.types import Receive, Scope, Send

from starforge.api.transport.callers import CallerT, Incoming
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.desk import Desk
from starforge.api.transport.encoding import encode_json
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Prepared
from starforge.api.transport.following import Following
from starforge.api.transport.http_protocol import ABORT
from starforge.api.transport.negotiation import MediaType
from starforge.api.transport.responses import refusal
from starforge.api.transport.source import Joint

WAITING_MAX = 64
"""Results that may wait for a slow reader; then it is opened again from where it was, when there is room."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"vary", b"accept"),
]
_COMPLETE = b"event: complete\ndata:\n\n"
_HEARTBEAT = b":\n\n"


def _next(payload: bytes) -> bytes:
    return b"event: next\ndata: " + payload + b"\n\n"


class _Refusal:
    """An event stream that is over before it began."""

    def __init__(self, refused: RequestRefused) -> None:
        self._body = _next(encode_json(refused.body()).encode()) + _COMPLETE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await send({"type": "http.response.body", "body": self._body})


class EventStream(Generic[CallerT]):
    """The response to one operation, and the `Place` where its results go."""

    refusal = _Refusal

    def __init__(self, desk: Desk[CallerT], asked: Prepared, incoming: Incoming[CallerT]) -> None:
        self._desk = desk
        self._asked = asked
        self._incoming = incoming
        self._waiting: deque[bytes] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_over = False
        self._following: Following | None = None
        self._works: set[asyncio.Task[None]] = set()

    # --- as a place

    @property
    def blocked(self) -> bool:
        return len(self._waiting) >= WAITING_MAX

    def next(self, payload: bytes) -> None:
        if not self._is_over:
            self._waiting.append(_next(payload))
            self._news.set()

    async def room(self) -> None:
        while self.blocked:
            self._room.clear()
            await self._room.wait()

    def fell_behind(self, joint: Joint) -> None:
        if self._following is not None and not self._is_over:
            self._start(partial(self._following.catch_up, joint))

    def ended(self, refused: RequestRefused | None) -> None:
        if refused is not None:
            self.next(encode_json(refused.body()).encode())
        self._is_over = True
        if self._following is not None:
            self._following.end()
        self._news.set()

    def revoke(self, sentence: str) -> None:
        """End it, as its token is no longer good."""
        self.ended(RequestRefused(ErrorCode.UNAUTHENTICATED, sentence))

    # --- as a response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._desk.connections.stream(self, self._incoming.caller):
                await self._respond(scope, receive, send)
        except RequestRefused as refused:
            await refusal(refused, MediaType.JSON)(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive))
        try:
            self._begin()
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._send_all(send, gone)
        except TimeoutError:
            self._desk.connections.slow += 1
            scope["extensions"][ABORT]()
            await gone
        finally:
            gone.cancel()
            self._end()

    def _begin(self) -> None:
        if self._asked.kind is OperationType.SUBSCRIPTION:
            self._following = self._desk.following(self._asked, self._incoming, self)
            self._start(self._following.begin)
        else:
            self._start(self._answer)

    async def _answer(self) -> None:
        with self._desk.in_flight():
            self.next(await self._desk.executor.answer(self._asked, self._incoming))
        self.ended(None)

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(self._guarded(work))
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  because_of logs what is not meant for the client
            self.ended(RequestRefused.because_of(error))

    def _end(self) -> None:
        self._is_over = True
        if self._following is not None:
            self._following.end()
        if self._asked.kind is not OperationType.MUTATION:
            for task in self._works:
                task.cancel()

    async def _send_all(self, send: Send, gone: asyncio.Task[None]) -> None:
        """Until the operation or the client ends, or the gateway does: the client comes back with its last cursor."""
        draining = asyncio.create_task(self._desk.draining.wait())
        try:
            while not gone.done():
                if self._waiting:
                    await self._send(send, self._taken())
                elif self._is_over:
                    await self._send(send, _COMPLETE, last=True)
                    return
                elif draining.done() and self._asked.kind is OperationType.SUBSCRIPTION:
                    await self._send(send, b"", last=True)
                    return
                elif not await self._heard({gone} if draining.done() else {gone, draining}):
                    await self._send(send, _HEARTBEAT)
        finally:
            draining.cancel()

    def _taken(self) -> bytes:
        taken = b"".join(self._waiting)
        self._waiting.clear()
        self._room.set()
        return taken

    async def _heard(self, others: set[asyncio.Task[Any]]) -> bool:
        """Whether anything happened before the next heartbeat is due."""
        self._news.clear()
        if self._waiting or self._is_over:
            return True
        news = asyncio.create_task(self._news.wait())
        try:
            timeout_s = self._desk.limits.heartbeat_s
            done, _ = await asyncio.wait({news, *others}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            return bool(done)
        finally:
            news.cancel()

    async def _send(self, send: Send, body: bytes, *, last: bool = False) -> None:
        """TimeoutError if the reader takes nothing for too long."""
        async with asyncio.timeout(self._desk.limits.send_timeout_s):
            await send({"type": "http.response.body", "body": body, "more_body": not last})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
