"""GraphQL over WebSocket: graphql-transport-ws and nothing else."""

from typing import Any, Generic

from starlette.types import Receive, Scope, Send

from starforge.api.transport.callers import CallerT
from starforge.api.transport.connection import Connection
from starforge.api.transport.desk import Desk
from starforge.api.transport.frames import EXTENSION, FrameProtocol
from starforge.api.transport.messages import SUBPROTOCOL, CloseCode


class WebSocketEndpoint(Generic[CallerT]):
    """An ASGI application for the WebSocket scope of a server that runs with `uvicorn_options`."""

    def __init__(self, desk: Desk[CallerT]) -> None:
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        frames: FrameProtocol | None = scope["extensions"].get(EXTENSION)
        if frames is None:
            raise RuntimeError("GraphQL over WebSocket needs a server that was started with `uvicorn_options`.")
        await receive()  # websocket.connect
        spoken = SUBPROTOCOL in scope["subprotocols"]
        # Accepted in any case, as only an open connection can be given a close code.
        await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL if spoken else None})
        if not spoken:
            frames.close(CloseCode.SUBPROTOCOL_NOT_ACCEPTABLE, f"Ask for the subprotocol {SUBPROTOCOL}.")
        elif self._desk.connections.is_full:
            frames.close(CloseCode.TRY_AGAIN_LATER, "This gateway has all the connections it can have: try again.")
        else:
            host, authorization = (scope["client"] or (None,))[0], _authorization(scope)
            frames.take_over(Connection(frames, self._desk, authorization=authorization, host=host))


def _authorization(scope: Any) -> str | None:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"), None)
