import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import Request

from starforge.api.transport.body import read_get, read_post
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits

LIMITS = TransportLimits(body_bytes=100, body_timeout_s=60)
Receive = Callable[[], Awaitable[Any]]


async def never() -> Any:
    await asyncio.Event().wait()


def arriving(*messages: Any) -> Receive:
    left = iter(messages)

    async def receive() -> Any:
        return next(left)

    return receive


def chunk(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def request(receive: Receive = never, *, query: str = "", **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query.encode(), "headers": raw}
    return Request(scope, receive)


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({}, False),
        ({"sec_fetch_site": "none"}, False),
        ({"sec_fetch_site": "same-origin"}, False),
        ({"sec_fetch_site": "same-site"}, True),
        ({"sec_fetch_site": "cross-site"}, True),
        ({"sec_fetch_site": "cross-site", "accept": "application/json"}, True),
        ({"sec_fetch_site": "cross-site", "x_starforge_csrf": "1"}, False),
        ({"sec_fetch_site": "cross-site", "apollo_require_preflight": "1"}, False),
        ({"sec_fetch_site": "cross-site", "authorization": "Bearer x"}, False),
    ],
)
def test_a_page_of_another_site_cannot_make_a_browser_get(headers: dict[str, Any], is_refused: bool) -> None:
    asked = request(query="query={a}", **headers)
    if not is_refused:
        assert read_get(asked).query == "{a}"
        return
    with pytest.raises(RequestRefused) as refused:
        read_get(asked)
    assert refused.value.status == 403


def test_a_body_in_pieces() -> None:
    receive = arriving(chunk(b'{"query": ', more=True), chunk(b'"{a}"}'))
    read = asyncio.run(read_post(request(receive, content_type="application/json"), LIMITS))
    assert read.query == "{a}"


@pytest.mark.parametrize(
    ("receive", "headers", "limits", "status"),
    [
        (never, {"content_length": "101"}, LIMITS, 413),
        (arriving(chunk(b"x" * 60, more=True), chunk(b"x" * 60, more=True)), {}, LIMITS, 413),
        (arriving(chunk(b"x" * 101)), {"content_length": "nonsense"}, LIMITS, 413),
        (never, {}, TransportLimits(body_timeout_s=0.01), 408),
        (arriving(chunk(b"{", more=True), {"type": "http.disconnect"}), {}, LIMITS, 400),
        (never, {"content_type": "text/plain"}, LIMITS, 415),
    ],
)
def test_what_is_refused(receive: Receive, headers: dict[str, str], limits: TransportLimits, status: int) -> None:
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(read_post(request(receive, **{"content_type": "application/json", **headers}), limits))
    assert refused.value.status == status
