"""The HTTP side of uvicorn, with two things it lacks: a way to cut a connection, and answers without a task.

A request that came before, byte for byte, and whose answer is kept, is answered from within the parser: making a scope,
a task and its events costs five times what sending the bytes does.
"""

from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from starforge.api.transport.front import BODY_MAX, Front, ready_bytes, request_key

ABORT = "starforge.abort"
"""In the scope's extensions of an HTTP request: cuts its connection, for a client that reads nothing."""
FRONT = "starforge.front"
"""In the state of the lifespan: a Front, for requests to `FRONT_PATH`."""
FRONT_PATH = b"/graphql"


class GatewayHttpProtocol(HttpToolsProtocol):
    """Give it to uvicorn as `http`."""

    _held: bytearray | None = None
    """The body of a request that nobody has begun to answer; only while what came at once is being read."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._held is not None and not self.transport.is_closing():
            self._begin()

    def on_headers_complete(self) -> None:
        if self._may_be_known():
            self._held = bytearray()
        else:
            self._begin()

    def _may_be_known(self) -> bool:
        parser, cycle = self.parser, cast("RequestResponseCycle | None", self.cycle)
        return (
            FRONT in self.app_state
            and self.url == FRONT_PATH
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and not self.expect_100_continue
            and not self.flow.write_paused
            and (cycle is None or cycle.response_complete)
        )

    def _begin(self) -> None:
        """The usual way."""
        held, self._held = self._held, None
        self.scope["extensions"] = cast("Any", {ABORT: self.transport.abort})
        super().on_headers_complete()
        if held:
            super().on_body(bytes(held))

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
            return
        self._held += body
        if len(self._held) > BODY_MAX:
            self._begin()

    def on_message_complete(self) -> None:
        if self._held is not None:
            front: Front[Any] = self.app_state[FRONT]
            key = request_key(b"POST", b"", self.client, self.headers, bytes(self._held))
            if (ready := front.ready(key)) is not None:
                self._held = None
                self.transport.write(ready_bytes(ready, self.server_state.default_headers))
                self.on_response_complete()
                return
            self._begin()
        super().on_message_complete()
