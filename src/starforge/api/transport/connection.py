"""One client on graphql-transport-ws, from `connection_init` to the close frame: no task of its own, only deadlines."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum, auto
from functools import partial
from typing import Any, Generic

from graphql import OperationType

from starforge.api.transport import messages
from starforge.api.transport.callers import CallerT, Credentials, Incoming, Transport
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.desk import Desk
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.frames import FrameProtocol, text_frame
from starforge.api.transport.identify import identify
from starforge.api.transport.messages import (
    BadMessage,
    ClientMessage,
    CloseCode,
    Complete,
    ConnectionInit,
    Ping,
    Subscribe,
)
from starforge.api.transport.operations import Operation

log = logging.getLogger(__name__)
MAX_REASON_BYTES = 123
"""What fits into a close frame beside its code (RFC 6455 §5.5)."""


class _Violation(Exception):
    """The client broke a rule for which the protocol closes the connection."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Awaits(Enum):
    """What has to happen before `due`."""

    INIT = auto()
    PING = auto()
    PONG = auto()


class Connection(Generic[CallerT]):
    __slots__ = (
        "_authorization", "_desk", "_frames", "_host", "_init_came", "_is_draining", "_room", "_task", "awaits",
        "blocked", "blocked_since", "due", "expires_at", "incoming", "operations",
    )  # fmt: skip

    def __init__(
        self, frames: FrameProtocol, desk: Desk[CallerT], *, authorization: str | None, host: str | None
    ) -> None:
        self._frames: FrameProtocol | None = frames
        self._desk = desk
        self._authorization = authorization
        self._host = host
        self._init_came = False
        self._is_draining = False
        self._room: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self.incoming: Incoming[CallerT] | None = None
        self.operations: dict[str, Operation] = {}
        self.blocked = False
        self.blocked_since = 0.0
        self.expires_at = float("inf")
        self.awaits = Awaits.INIT
        self.due = desk.now() + desk.limits.init_timeout_s
        desk.connections.add(self)

    # --- what comes

    def on_text(self, text: str) -> None:
        try:
            self._demand_size(text)
            self._handle(messages.read_message(text))
        except BadMessage as error:
            self.close(CloseCode.BAD_MESSAGE, str(error))
        except _Violation as violation:
            self.close(violation.code, str(violation))
        except Exception:
            log.exception("A WebSocket connection was closed because of a defect.")
            self.close(CloseCode.INTERNAL_ERROR, "Something went wrong inside StarForge.")

    def on_binary(self) -> None:
        self.close(CloseCode.BAD_MESSAGE, "Only text frames are taken.")

    def _demand_size(self, text: str) -> None:
        limits = self._desk.limits
        most = limits.frame_bytes if self.incoming else limits.frame_bytes_before_init
        if len(text) > most or len(text.encode()) > most:
            raise _Violation(CloseCode.TOO_BIG, f"A frame may have {most} bytes here.")

    def _handle(self, message: ClientMessage) -> None:
        match message:
            case ConnectionInit():
                self._begin(message)
            case Subscribe():
                self._subscribe(message)
            case Complete():
                if operation := self.operations.get(message.id):
                    operation.release()
                    self.forget(operation)
            case Ping():
                self.write(text_frame(messages.pong(message.payload).encode()))
            case _:
                if self.awaits is Awaits.PONG:
                    self._expect_ping()

    # --- who it is

    def _begin(self, message: ConnectionInit) -> None:
        if self._init_came:
            raise _Violation(CloseCode.TOO_MANY_INITS, "Too many initialisation requests")
        self._init_came = True
        self.due = float("inf")
        self._task = asyncio.create_task(self._admit(message.payload))

    async def _admit(self, payload: Mapping[str, Any]) -> None:
        given = payload.get("authorization", self._authorization)
        credentials = Credentials(given if isinstance(given, str) else None, self._host)
        timeout_s = self._desk.limits.authentication_timeout_s
        try:
            caller = await identify(self._desk.callers.authenticate, credentials, timeout_s=timeout_s)
            self._desk.connections.admit(self, self._desk.callers.key(caller))
        except RequestRefused as refused:
            self._turn_away(refused)
            return
        self._authorization, self._task = None, None
        self.incoming = Incoming(caller, Transport.WEBSOCKET)
        self.expires_at = self._desk.callers.expires_at(caller) or float("inf")
        self.write(_ACK)
        self._expect_ping()

    def _turn_away(self, refused: RequestRefused) -> None:
        sentence = refused.errors[0]["message"]
        if refused.code in (ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN):
            self.close(CloseCode.FORBIDDEN, sentence)
        elif refused.code is ErrorCode.TOO_MANY_SUBSCRIPTIONS:
            self.close(CloseCode.TRY_AGAIN_LATER, sentence)
        else:
            self.close(CloseCode.TRY_AGAIN_LATER, "Your token can't be checked right now.")

    # --- what it asks for

    def _subscribe(self, message: Subscribe) -> None:
        if self.incoming is None:
            raise _Violation(CloseCode.UNAUTHORIZED, "Subscribe after the connection_ack.")
        if message.id in self.operations:
            raise _Violation(CloseCode.ID_IN_USE, f"Subscriber for {message.id} already exists")
        operation = Operation(message.id, self)
        if len(self.operations) >= self._desk.limits.operations_per_connection or self._is_draining:
            self.operations[message.id] = operation
            operation.ended(self._too_many())
            return
        self.operations[message.id] = operation
        self.start(operation, partial(self._run, operation, message, self.incoming))

    def _too_many(self) -> RequestRefused:
        if self._is_draining:
            return RequestRefused(ErrorCode.UNAVAILABLE, "This gateway is about to end: connect again.")
        most = self._desk.limits.operations_per_connection
        sentence = f"{most} operations run on this connection, the most it may have: end one or open another."
        return RequestRefused(ErrorCode.TOO_MANY_SUBSCRIPTIONS, sentence)

    def start(self, operation: Operation, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a part of an operation, which ends with an error if that part does."""
        task = operation.task = asyncio.create_task(self._guarded(operation, work))
        task.add_done_callback(lambda _: _let_go(operation, task))

    async def _guarded(self, operation: Operation, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:  # noqa: BLE001  because_of logs what is not meant for the client
            operation.ended(RequestRefused.because_of(error))

    async def _run(self, operation: Operation, message: Subscribe, incoming: Incoming[CallerT]) -> None:
        asked = await self._desk.executor.prepare(message.request, incoming.caller)
        operation.is_mutation = asked.kind is OperationType.MUTATION
        if asked.kind is OperationType.SUBSCRIPTION:
            operation.is_subscription = True
            self._close_if_drained()
            operation.following = self._desk.following(asked, incoming, operation)
            await operation.following.begin()
            return
        with self._desk.in_flight():
            payload = await self._desk.executor.answer(asked, incoming)
        operation.next(payload)
        operation.ended(None)

    def forget(self, operation: Operation) -> None:
        if self.operations.get(operation.id) is operation:
            del self.operations[operation.id]
        self._close_if_drained()

    # --- what leaves

    def write(self, frame: bytes) -> None:
        if self._frames is not None:
            self._frames.write_frame(frame)

    def on_blocked(self) -> None:
        self.blocked, self.blocked_since = True, self._desk.now()
        if self._frames is not None:
            self._frames.pause_reading()

    def on_writable(self) -> None:
        self.blocked = False
        if self._room is not None:
            self._room.set()
            self._room = None
        if self._frames is not None:
            self._frames.resume_reading()

    async def room(self) -> None:
        """Returns when what was written has left."""
        if not self.blocked:
            await asyncio.sleep(0)  # a generator that never waits must not keep the others from running
            return
        if self._room is None:
            self._room = asyncio.Event()
        await self._room.wait()

    # --- how it ends

    def on_due(self, now: float) -> None:
        """The deadline has come."""
        match self.awaits:
            case Awaits.INIT:
                self.close(CloseCode.INIT_TIMEOUT, "Connection initialisation timeout")
            case Awaits.PING:
                self.write(_PING)
                self.awaits, self.due = Awaits.PONG, now + self._desk.limits.pong_timeout_s
            case Awaits.PONG:
                self.close(CloseCode.TERMINATED, "There was no pong to our ping.")

    def _expect_ping(self) -> None:
        self.awaits, self.due = Awaits.PING, self._desk.now() + self._desk.limits.ping_interval_s

    def close_as_slow(self) -> None:
        """What has not been read is told last, with the advice to resume."""
        sentence = "You read too slowly: resume from the last cursor that you got."
        for operation in list(self.operations.values()):
            if operation.following is not None:
                operation.ended(RequestRefused.slow(sentence, operation.following.cursor))
        self._desk.connections.slow += 1
        self.close(CloseCode.TRY_AGAIN_LATER, sentence)

    def revoke(self, sentence: str) -> None:
        self.close(CloseCode.FORBIDDEN, sentence)

    def close(self, code: CloseCode, reason: str) -> None:
        """Send a close frame, once; nothing is sent after it."""
        frames = self._frames
        if frames is not None:
            short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
            frames.close(code, short)
            self.on_gone()

    def on_shutdown(self) -> None:
        self._is_draining = True
        self._close_if_drained()

    def _close_if_drained(self) -> None:
        if self._is_draining and all(operation.is_subscription for operation in self.operations.values()):
            self.close(CloseCode.SERVICE_RESTART, "This gateway ends: connect again.")

    def on_gone(self) -> None:
        if self._frames is None:
            return
        self._frames = None
        self._desk.connections.remove(self)
        if self._task is not None:
            self._task.cancel()
        for operation in list(self.operations.values()):
            operation.release()
        self.operations.clear()
        self.on_writable()


def _let_go(operation: Operation, task: asyncio.Task[None]) -> None:
    if operation.task is task:
        operation.task = None


_ACK = text_frame(messages.connection_ack().encode())
_PING = text_frame(messages.ping().encode())
