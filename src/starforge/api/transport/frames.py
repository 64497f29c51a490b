"""The WebSocket side of uvicorn, without a task and a queue for each connection.

uvicorn's protocol does the handshake, reads the frames and closes; an ASGI application that finds EXTENSION in its
scope may take the connection over after the handshake: messages then come by a call, and frames that are ready leave
by `transport.write`, which joins those of one round of the loop. Measured beside ASGI's `send`: half the time for a
message and a third of the memory for a connection (docs/benchmarks.md).
"""

from typing import Any, Protocol, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

EXTENSION = "starforge.frames"
_TEXT = 0x81
_SHORT, _MEDIUM = 126, 1 << 16


class Receiver(Protocol):
    """Whoever takes a connection over; nothing of it may raise."""

    def on_text(self, text: str) -> None: ...

    def on_binary(self) -> None: ...

    def on_writable(self) -> None:
        """What was written has left, all but a little."""
        ...

    def on_blocked(self) -> None:
        """So much waits to leave that no more should be written than must be."""
        ...

    def on_gone(self) -> None:
        """The connection is closed, or lost: nothing can be sent any more."""
        ...

    def on_shutdown(self) -> None:
        """The server ends: close with 1012 as soon as what has begun is done."""
        ...


def text_frame(*parts: bytes) -> bytes:
    """One unmasked, final text frame (RFC 6455 §5.2) whose payload is all parts together."""
    size = sum(map(len, parts))
    return b"".join((_header(size), *parts))


def _header(size: int) -> bytes:
    if size < _SHORT:
        return bytes((_TEXT, size))
    if size < _MEDIUM:
        return bytes((_TEXT, 126, size >> 8, size & 0xFF))
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big")


class _Nowhere:
    """Takes what uvicorn tells an application that is no longer there."""

    def put_nowait(self, message: Any) -> None: ...


_NOWHERE = _Nowhere()


class FrameProtocol(WebSocketsSansIOProtocol):
    """Give it to uvicorn as `ws`."""

    receiver: Receiver | None = None
    was_taken_over = False

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            cast("Any", self.scope)["extensions"][EXTENSION] = self

    def take_over(self, receiver: Receiver) -> None:
        """From now on messages go to `receiver`; the application returns, and the connection stays open.

        What came meanwhile is handed over first.
        """
        waiting, self.queue = self.queue, cast("Any", _NOWHERE)
        self.receiver, self.was_taken_over = receiver, True
        for handshake_only in ("scope", "request", "response"):
            delattr(self, handshake_only)
        self.resume_reading()
        while not waiting.empty():
            self._hand_over(waiting.get_nowait())

    def _hand_over(self, message: Any) -> None:
        if self.receiver is None:
            return
        if message["type"] == "websocket.disconnect":
            self.receiver.on_gone()
        elif message.get("text") is not None:
            self.receiver.on_text(message["text"])
        else:
            self.receiver.on_binary()

    async def run_asgi(self) -> None:
        """As uvicorn's, but an application that returns after the connection was taken over leaves it open."""
        try:
            await self.app(self.scope, self.receive, self.send)
        except ClientDisconnected:
            pass
        except Exception:
            self.logger.exception("Exception in ASGI application")
        if not self.was_taken_over:
            self.send_500_response()
            if self.close_timer is None:
                self.transport.close()

    def write_frame(self, frame: bytes) -> None:
        """Send a frame that `text_frame` made; lost without a word if the connection is closing."""
        if not self.close_sent and not self.disconnected:
            self.transport.write(frame)

    def close(self, code: int, reason: str) -> None:
        """Send a close frame, wait a while for the other side's, and close; does nothing if it is closing."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        if self.conn.state is not State.OPEN:  # a close frame of the other side came with what this is about
            return
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._resume()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def abort(self) -> None:
        """Cut the connection: what waits to leave is lost."""
        self.transport.abort()

    def _resume(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def pause_reading(self) -> None:
        """Take no more from the other side until `resume_reading`."""
        if not self.read_paused and not self.transport.is_closing():
            self.read_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if not self.transport.is_closing():
            self._resume()

    def send_receive_event_to_app(self) -> None:
        if self.receiver is None:
            super().send_receive_event_to_app()
            return
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames = []
        if self.close_sent:
            return
        if self.curr_msg_data_type != "text":
            self.receiver.on_binary()
            return
        try:
            text = bytes(data).decode()
        except UnicodeDecodeError:
            self.close(1007, "A text frame has to be UTF-8.")
            return
        self.receiver.on_text(text)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.receiver is not None:
            self.receiver.on_blocked()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.receiver is not None:
            self.receiver.on_writable()

    def handle_close(self, event: Any) -> None:
        super().handle_close(event)
        self._tell_gone()

    def handle_parser_exception(self) -> None:
        super().handle_parser_exception()
        self._tell_gone()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._tell_gone()

    def _tell_gone(self) -> None:
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            receiver.on_gone()

    def shutdown(self) -> None:
        if self.receiver is not None:
            self.receiver.on_shutdown()
        else:
            super().shutdown()
