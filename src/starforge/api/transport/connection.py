"""One client on graphql-transport-ws, from `connection_init` to the close frame."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Generic

from starlette.websockets import WebSocket

from starforge.api.transport import messages
from starforge.api.transport.callers import Authenticate, CallerT, Credentials, Incoming, Transport
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Executor
from starforge.api.transport.identify import identify
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.messages import (
    BadMessage,
    ClientMessage,
    CloseCode,
    Complete,
    ConnectionInit,
    Ping,
    Subscribe,
)
from starforge.api.transport.operations import IdInUse, Operations
from starforge.api.transport.peer import Peer

log = logging.getLogger(__name__)


class _Violation(Exception):
    """The client broke a rule for which the protocol closes the connection."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Connection(Generic[CallerT]):
    def __init__(
        self,
        websocket: WebSocket,
        *,
        executor: Executor[CallerT],
        authenticate: Authenticate[CallerT],
        limits: TransportLimits,
    ) -> None:
        self._websocket = websocket
        self._authenticate = authenticate
        self._limits = limits
        self._peer = Peer(websocket, send_timeout_s=limits.send_timeout_s)
        self._operations = Operations(executor, self._peer, most=limits.operations_per_connection)
        self._init_came = asyncio.Event()
        self._pong_came = asyncio.Event()
        self._incoming: Incoming[CallerT] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Returns when the connection is closed and its operations have ended."""
        self._tasks = {asyncio.create_task(work) for work in (self._read(), self._expect_init())}
        try:
            await self._peer.closed.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await self._operations.end()
            for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    log.error("A task of a WebSocket connection failed.", exc_info=outcome)

    async def _read(self) -> None:
        try:
            while not self._peer.closed.is_set():
                await self._read_one()
        except BadMessage as error:
            await self._peer.close(CloseCode.BAD_MESSAGE, str(error))
        except _Violation as violation:
            await self._peer.close(violation.code, str(violation))
        except Exception:
            log.exception("A WebSocket connection was closed because of a defect.")
            await self._peer.close(CloseCode.INTERNAL_ERROR, "Something went wrong inside StarForge.")

    async def _read_one(self) -> None:
        event = await self._websocket.receive()
        if event["type"] == "websocket.disconnect":
            self._peer.gone()
            return
        text = event.get("text")
        if text is None:
            raise BadMessage("Only text frames are taken.")
        most = self._limits.frame_bytes if self._incoming else self._limits.frame_bytes_before_init
        if len(text.encode()) > most:
            raise _Violation(CloseCode.TOO_BIG, f"A frame may have {most} bytes here.")
        await self._handle(messages.read_message(text))

    async def _handle(self, message: ClientMessage) -> None:
        match message:
            case ConnectionInit():
                self._begin(message)
            case Subscribe():
                await self._subscribe(message)
            case Complete():
                self._operations.stop(message.id)
            case Ping():
                await self._peer.send(messages.pong(message.payload))
            case _:
                self._pong_came.set()

    async def _subscribe(self, message: Subscribe) -> None:
        if self._incoming is None:
            raise _Violation(CloseCode.UNAUTHORIZED, "Subscribe after the connection_ack.")
        try:
            await self._operations.start(message, self._incoming)
        except IdInUse as error:
            raise _Violation(CloseCode.ID_IN_USE, f"Subscriber for {message.id} already exists") from error

    def _begin(self, message: ConnectionInit) -> None:
        if self._init_came.is_set():
            raise _Violation(CloseCode.TOO_MANY_INITS, "Too many initialisation requests")
        self._init_came.set()
        # Beside the reading, which has to see what else the client sends meanwhile.
        self._tasks.add(asyncio.create_task(self._admit(message.payload)))

    async def _admit(self, payload: Mapping[str, Any]) -> None:
        timeout_s = self._limits.authentication_timeout_s
        try:
            caller = await identify(self._authenticate, self._credentials(payload), timeout_s=timeout_s)
        except RequestRefused as refused:
            await self._turn_away(refused)
            return
        self._incoming = Incoming(caller, Transport.WEBSOCKET, dict(self._websocket.headers))
        await self._peer.send(messages.connection_ack())
        await self._keep_alive()

    def _credentials(self, payload: Mapping[str, Any]) -> Credentials:
        client = self._websocket.client
        given = payload.get("authorization", self._websocket.headers.get("authorization"))
        return Credentials(given if isinstance(given, str) else None, client.host if client else None)

    async def _turn_away(self, refused: RequestRefused) -> None:
        if refused.code in (ErrorCode.UNAUTHENTICATED, ErrorCode.FORBIDDEN):
            await self._peer.close(CloseCode.FORBIDDEN, refused.errors[0]["message"])
        else:
            await self._peer.close(CloseCode.TRY_AGAIN_LATER, "Your token can't be checked right now.")

    async def _expect_init(self) -> None:
        try:
            async with asyncio.timeout(self._limits.init_timeout_s):
                await self._init_came.wait()
        except TimeoutError:
            await self._peer.close(CloseCode.INIT_TIMEOUT, "Connection initialisation timeout")

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(self._limits.ping_interval_s)
            self._pong_came.clear()
            await self._peer.send(messages.ping())
            try:
                async with asyncio.timeout(self._limits.pong_timeout_s):
                    await self._pong_came.wait()
            except TimeoutError:
                await self._peer.close(CloseCode.TERMINATED, "There was no pong to our ping.")
                return
