"""Reads what a client asks of a playground, and leaves out or refuses all that could lead elsewhere."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from starforge.api.playgrounds.openai.limits import OpenAiLimits
from starforge.api.playgrounds.openai.refusals import Refused
from starforge.api.transport.http_protocol import TARGET
from starforge.domain.names import PlaygroundId
from starforge.domain.playground_door import METHODS, QUERY_MAX, ServerRequest, is_plain

PARAMETERS_MAX = 64
PASSED = frozenset({"accept", "content-type", "traceparent", "tracestate", "x-data-parallel-rank", "x-request-id"})
"""Headers that a server gets to see. Not the caller's token, nor anything that says who is to be believed."""
_TARGET = re.compile(r"/playgrounds/(play-[a-z0-9]{1,40})/v1/([^?]*)(?:\?(.*))?")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class Asked:
    """A request without its body."""

    playground: PlaygroundId
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]

    def with_body(self, body: bytes) -> ServerRequest:
        return ServerRequest(self.method, self.path, self.query, self.headers, body)


def read(scope: Scope) -> Asked:
    """What is asked, by the target as it was sent: nothing of it is decoded. Refused if it is anything but plain."""
    found = _TARGET.fullmatch(_target(scope))
    if found is None:
        message = "There is nothing here: the OpenAI API of a playground is at /playgrounds/<id>/v1/."
        raise Refused(404, message, "not_found")
    if scope["method"] not in METHODS:
        message = f"{scope['method']} is not a method of the OpenAI API of playgrounds: send GET or POST."
        raise Refused(405, message, "method_not_allowed", allow=", ".join(sorted(METHODS)))
    if not is_plain(found[2]):
        message = "The path below /v1/ may have letters, digits, `-`, `.`, `_` and `~` between single slashes alone."
        raise Refused(400, message, "invalid_path")
    headers = Headers(scope=scope)
    if headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "Send the body as it is, without a Content-Encoding.", "unsupported_encoding")
    return Asked(
        PlaygroundId(found[1]), scope["method"], found[2], _query(found[3] or ""), tuple(_passed(headers, scope))
    )


def _target(scope: Scope) -> str:
    """Path and query as they came; Refused for the whole of an address, which is for proxies."""
    extensions: Mapping[str, Any] = scope.get("extensions") or {}
    sent = extensions.get(TARGET) or scope["raw_path"] + (
        b"?" + scope["query_string"] if scope["query_string"] else b""
    )
    target: str = sent.decode("latin-1")
    if not target.startswith("/"):
        message = "Send the path of this gateway alone, not the address of something else."
        raise Refused(400, message, "invalid_target")
    return target


def _query(sent: str) -> str:
    """The same parameters, encoded anew."""
    try:
        pairs = parse_qsl(sent, keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
        query = urlencode(pairs)
    except ValueError as error:
        message = f"The query can't be read: it is not UTF-8, or has more than {PARAMETERS_MAX} parameters."
        raise Refused(400, message, "invalid_query") from error
    if len(query) > QUERY_MAX:
        raise Refused(400, f"The query may have {QUERY_MAX} characters.", "invalid_query")
    return query


def _passed(headers: Headers, scope: Scope) -> Iterator[tuple[str, str]]:
    """The first of each that is passed on, but for those that are of this connection alone."""
    hops = {word.strip().lower() for line in headers.getlist("connection") for word in line.split(",")}
    for name in sorted(PASSED - hops):
        value = headers.get(name)
        if value is None:
            continue
        if not _PRINTABLE.fullmatch(value):
            raise Refused(400, f"The header {name} may have printable ASCII alone.", "invalid_header")
        yield name, value
    if scope["method"] == "POST" and not (headers.get("content-type") and "content-type" not in hops):
        yield "content-type", "application/json"


async def read_body(receive: Receive, scope: Scope, limits: OpenAiLimits) -> bytes:
    """The whole body. Refused if it is too large or comes too slowly, ClientDisconnect if it never comes."""
    declared = Headers(scope=scope).get("content-length", "0")
    if declared.isdecimal() and int(declared) > limits.body_bytes:
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.body_s):
            return await _up_to(receive, limits)
    except TimeoutError as error:
        raise Refused(408, f"The body did not come within {limits.body_s:g} seconds.", "body_late") from error


async def _up_to(receive: Receive, limits: OpenAiLimits) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.body_bytes:
            raise _too_large(limits)
    return bytes(body)


def _too_large(limits: OpenAiLimits) -> Refused:
    message = f"The body of a request to a playground may have {limits.body_bytes:,} bytes."
    return Refused(413, message, "body_too_large", connection="close")
