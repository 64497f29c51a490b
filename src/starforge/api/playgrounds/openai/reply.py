"""Sends a server's answer to the client as it comes, and says so when it breaks off."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.types import Scope, Send

from starforge.api.playgrounds.openai.events import DONE, KEEP_ALIVE, Events
from starforge.api.playgrounds.openai.limits import OpenAiLimits
from starforge.api.playgrounds.openai.refusals import Refused
from starforge.api.playgrounds.openai.tokens import TAIL_MAX, Tokens, tokens_in
from starforge.api.transport.http_protocol import ABORT
from starforge.domain.playground_door import Headers, ServerAnswer

PASSED = frozenset({"content-encoding", "content-length", "openai-processing-ms", "retry-after", "x-request-id"})
"""Headers that a client gets to see, beside the kind of the body."""
EVENT_STREAM = "text/event-stream"
OPAQUE = "application/octet-stream"
_KINDS = frozenset({EVENT_STREAM, "application/json", "application/x-ndjson", "text/plain", OPAQUE})
_OURS = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    # What a server says is no page of this gateway, whatever it may look like.
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
]
_DONE_TAIL = 64
_ENDS_WITH_DONE = frozenset({"chat/completions", "completions"})


class Reply:
    """One response. `first` is called when the first event of a stream is passed on, `counted` with its tokens."""

    def __init__(
        self,
        scope: Scope,
        send: Send,
        limits: OpenAiLimits,
        *,
        first: Callable[[], None],
        counted: Callable[[Tokens], None],
    ) -> None:
        self._scope, self._send, self._limits = scope, send, limits
        self._first, self._counted = first, counted
        self._sending = asyncio.Lock()
        self._events: Events | None = None
        self._sent_at = 0.0
        self.begun = False

    async def pass_on(self, answer: ServerAnswer, path: str) -> None:
        """The whole answer to a request of `path`. FleetUnavailable if it breaks off."""
        headers = dict(reversed(list(answer.headers)))  # the first of each
        if 300 <= answer.status < 400 or answer.status < 200:
            message = f"The server of the playground answered {answer.status}, which leads elsewhere or nowhere."
            raise Refused(502, message, "bad_answer")
        kind = headers.get("content-type", OPAQUE).partition(";")[0].strip().lower()
        is_events = kind == EVENT_STREAM and "content-encoding" not in headers
        await self._begin(answer.status, _headers(answer.headers, kind, with_length=not is_events))
        if is_events:
            await self._pass_events(answer, path)
        else:
            await self._pass_body(answer)

    async def break_off(self, problem: Refused) -> None:
        """Ends what has begun: event streams with an event that says why, all else by cutting the connection."""
        if self._events is None:
            return self._cut()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.goodbye_s):
                await self._write(self._events.broken(problem.event), more=False)
            return None
        self._cut()

    async def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _pass_body(self, answer: ServerAnswer) -> None:
        tail = bytearray()
        async for piece in answer.pieces():
            await self._write(piece)
            tail += piece
            del tail[:-TAIL_MAX]
        await self._write(b"", more=False)
        self._count(bytes(tail))

    async def _pass_events(self, answer: ServerAnswer, path: str) -> None:
        events = self._events = Events()
        tail, is_first = b"", True
        async with self._kept_alive(events):
            async for piece in answer.pieces():
                ready = events.feed(piece)
                if not ready:
                    continue
                await self._write(ready)
                if is_first:
                    is_first = False
                    self._first()
                if b'"usage"' in ready:
                    self._count(ready)
                tail = ready[-_DONE_TAIL:]
        rest = events.rest()
        if path in _ENDS_WITH_DONE and DONE not in tail + rest:
            message = "The server of the playground ended its answer before it was complete."
            raise Refused(502, message, "broken_off")
        await self._write(rest, more=False)

    @asynccontextmanager
    async def _kept_alive(self, events: Events) -> AsyncIterator[None]:
        task = asyncio.create_task(self._keep_alive(events))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _keep_alive(self, events: Events) -> None:
        loop, pause_s = asyncio.get_running_loop(), self._limits.keep_alive_s
        self._sent_at = loop.time()
        while True:
            quiet_s = loop.time() - self._sent_at
            if quiet_s < pause_s:
                await asyncio.sleep(pause_s - quiet_s)
            elif events.whole:
                await self._write(KEEP_ALIVE)
            else:
                self._sent_at = loop.time()

    async def _write(self, piece: bytes, *, more: bool = True) -> None:
        """In turn, as a comment must not come into an event."""
        async with self._sending:
            if not piece and more:
                return
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})
            self._sent_at = asyncio.get_running_loop().time()

    def _count(self, text: bytes) -> None:
        found = tokens_in(text)
        if found:
            self._counted(found)

    def _cut(self) -> None:
        extensions: dict[str, Any] = self._scope.get("extensions") or {}
        abort: Callable[[], None] | None = extensions.get(ABORT)
        if abort is None:
            raise RuntimeError("the server below can't cut a connection")
        abort()


def _headers(given: Headers, kind: str, *, with_length: bool) -> list[tuple[bytes, bytes]]:
    shown = kind if kind in _KINDS or kind.startswith("audio/") else OPAQUE
    utf8 = "; charset=utf-8" if shown in {EVENT_STREAM, "text/plain"} else ""
    passed = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in given
        if name in PASSED and (with_length or name != "content-length")
    ]
    return [(b"content-type", f"{shown}{utf8}".encode("latin-1")), *_OURS, *passed]
