"""The sending side of one WebSocket: frames one after the other, none after the close."""

import asyncio
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from starforge.api.transport.messages import CloseCode

MAX_REASON_BYTES = 123
"""What fits into a close frame beside its code (RFC 6455 §5.5)."""


def _always() -> bool:
    return True


class Peer:
    def __init__(self, websocket: WebSocket, *, send_timeout_s: float) -> None:
        self._websocket = websocket
        self._send_timeout_s = send_timeout_s
        self._one_at_a_time = asyncio.Lock()
        self._is_closing = False
        self.closed = asyncio.Event()
        """Set when the close frame has left, or the other side is no longer there."""

    async def send(self, frame: str, *, claim: Callable[[], bool] = _always) -> None:
        """`claim` is asked at the last moment, when nothing can come between its answer and the frame; false keeps
        the frame back. A peer that is gone gets nothing, and one that does not read is closed as slow."""
        try:
            async with asyncio.timeout(self._send_timeout_s), self._one_at_a_time:
                if not self._is_closing and claim():
                    await self._websocket.send_text(frame)
        except TimeoutError:
            await self.close(CloseCode.TRY_AGAIN_LATER, "You read too slowly.")
        except (OSError, WebSocketDisconnect):
            self.gone()

    def gone(self) -> None:
        """The other side has closed, or is no longer there."""
        self._is_closing = True
        self.closed.set()

    async def close(self, code: CloseCode, reason: str) -> None:
        """Does nothing if it is closed already."""
        if self._is_closing:
            return
        self._is_closing = True
        short = reason.encode()[:MAX_REASON_BYTES].decode(errors="ignore")
        try:
            async with asyncio.timeout(self._send_timeout_s), self._one_at_a_time:
                await self._websocket.close(code, short)
        except (OSError, TimeoutError, WebSocketDisconnect, RuntimeError):
            # It went away meanwhile: there is nobody left to tell (RuntimeError is how Starlette says so).
            return
        finally:
            self.closed.set()
