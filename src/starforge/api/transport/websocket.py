"""GraphQL over WebSocket: graphql-transport-ws and nothing else."""

from typing import Generic

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from starforge.api.transport.callers import Authenticate, CallerT
from starforge.api.transport.connection import Connection
from starforge.api.transport.execution import Executor
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.messages import SUBPROTOCOL, CloseCode
from starforge.api.transport.peer import Peer


class WebSocketEndpoint(Generic[CallerT]):
    """An ASGI application for the WebSocket scope."""

    def __init__(
        self, *, executor: Executor[CallerT], authenticate: Authenticate[CallerT], limits: TransportLimits
    ) -> None:
        self._executor = executor
        self._authenticate = authenticate
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        websocket = WebSocket(scope, receive, send)
        if SUBPROTOCOL not in scope["subprotocols"]:
            # Accepted first, as only an open connection can be given a close code.
            await websocket.accept()
            peer = Peer(websocket, send_timeout_s=self._limits.send_timeout_s)
            await peer.close(CloseCode.SUBPROTOCOL_NOT_ACCEPTABLE, f"Ask for the subprotocol {SUBPROTOCOL}.")
            return
        await websocket.accept(subprotocol=SUBPROTOCOL)
        connection = Connection(
            websocket, executor=self._executor, authenticate=self._authenticate, limits=self._limits
        )
        await connection.run()
