"""Requests that came before, byte for byte, and are answered with bytes that are kept: nothing of them is read again."""

import hashlib
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from starlette.types import Message, Receive

from starforge.api.transport.answers import Answer, Recent
from starforge.api.transport.callers import Callers, CallerT, CostTold
from starforge.api.transport.encoding import encode_json
from starforge.api.transport.execution import Executor, Prepared
from starforge.api.transport.negotiation import MediaType
from starforge.domain.errors import StarForgeError

KEPT = 5_000
KEPT_BYTES = 32 * 1024 * 1024
BODY_MAX = 64 * 1024
GOOD_FOR_S = 2.0
"""How long a token that was checked counts as checked for the same bytes."""
_NAMES = (
    b"accept", b"content-type", b"if-none-match", b"sec-fetch-site", b"x-starforge-csrf",
    b"apollo-require-preflight",
)  # fmt: skip

RequestKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Known(Generic[CallerT]):
    """What became of such a request the last time."""

    caller: CallerT
    points: int
    extensions: Mapping[str, Any]
    answer_key: Hashable
    media: MediaType
    good_until: float
    size: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A response that only has to be sent."""

    answer: Answer
    extensions: bytes | None
    media: MediaType


class Front(Generic[CallerT]):
    def __init__(self, executor: Executor[CallerT], callers: Callers[CallerT]) -> None:
        self._executor, self._callers = executor, callers
        self._known: Recent[RequestKey, Known[CallerT]] = Recent(
            most=KEPT, most_bytes=KEPT_BYTES, size=lambda known: known.size
        )

    def remember(self, key: RequestKey, caller: CallerT, prepared: Prepared, media: MediaType) -> None:
        size = sum(len(part) for part in key if isinstance(part, bytes))
        until = time.monotonic() + GOOD_FOR_S
        self._known.put(
            key,
            Known(caller, prepared.points, prepared.document.text.extensions, prepared.answer_key, media, until, size),
        )

    def ready(self, key: RequestKey) -> Ready | None:
        """The response to a request that is known, if its answer is kept and true; None for the long way."""
        known = self._known.get(key)
        if known is None:
            return None
        if time.monotonic() >= known.good_until or self._is_expired(known.caller):
            self._known.drop(key)
            return None
        answer = self._executor.answers.get(known.answer_key)
        if answer is None:
            return None
        return self._charged(known, answer)

    def _is_expired(self, caller: CallerT) -> bool:
        expires_at = self._callers.expires_at(caller)
        return expires_at is not None and time.time() >= expires_at

    def _charged(self, known: Known[CallerT], answer: Answer) -> Ready | None:
        try:
            cost = self._callers.charge(known.caller, known.points)
        except StarForgeError:
            return None  # whoever has no points left is told so on the long way, which takes none either
        deprecated = known.extensions
        if not cost and not deprecated:
            return Ready(answer, None, known.media)
        if cost and not deprecated:
            return Ready(answer, _cost_alone(cost), known.media)
        told = {**deprecated, **({"cost": cost} if cost else {})}
        return Ready(answer, encode_json(told).encode(), known.media)


def _cost_alone(cost: CostTold) -> bytes:
    """As JSON, ten times as fast as `encode_json`: all of it are whole numbers under plain names."""
    return b'{"cost":{%b}}' % b",".join(b'"%b":%d' % (name.encode(), value) for name, value in cost.items())


def request_key(
    method: bytes, query: bytes, client: tuple[str, int] | None, headers: list[tuple[bytes, bytes]], body: bytes
) -> RequestKey:
    """Everything of a request that an answer depends on; names of headers are in lower case."""
    given = dict(headers)
    secret = hashlib.sha256(given.get(b"authorization", b"")).digest()  # so that no token stays in memory for this
    return (method, query, body, client[0] if client else None, secret, *map(given.get, _NAMES))


def ready_bytes(ready: Ready, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    """The whole response to a POST, as it goes over the wire."""
    body = ready.answer.body(ready.extensions)
    headers = [*default_headers, *HEADERS[ready.media], NO_STORE, (b"content-length", b"%d" % len(body))]
    head = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body


HEADERS = {
    media: [(b"content-type", f"{media}; charset=utf-8".encode()), (b"vary", b"accept, authorization")]
    for media in MediaType
}
NO_STORE = (b"cache-control", b"no-store")


async def whole_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """The body if it came in one piece and is small, and a `receive` that gives it again."""
    first: Message = await receive()
    waiting = [first]
    body = first.get("body", b"") if first["type"] == "http.request" and not first.get("more_body") else None

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return (body if body is not None and len(body) <= BODY_MAX else None), again
