"""HTTP to the servers of playgrounds, for every fleet that has real ones: bodies come as they are sent."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from starforge.domain.errors import FleetUnavailable
from starforge.domain.playground_door import Headers, ServerAnswer, ServerRequest

CONNECT_S = 5.0
SEND_S = 30.0
KEPT = 64
KEPT_S = 30.0
_TIMEOUT = httpx.Timeout(SEND_S, connect=CONNECT_S, read=None)
_NEVER_REACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)


@dataclass(frozen=True)
class HttpAnswer:
    """A ServerAnswer; `to` names who gives it."""

    response: httpx.Response
    to: str

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def headers(self) -> Headers:
        return self.response.headers.multi_items()

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self.response.aiter_raw():
                yield piece
        except httpx.HTTPError as error:
            raise FleetUnavailable(f"{self.to} broke off in the middle of its answer ({_why(error)}).") from error


def client(*, tls: ssl.SSLContext | bool = True, proxy: str | None = None, kept: int = KEPT) -> httpx.AsyncClient:
    """A client that takes nothing from the environment; at most `kept` connections wait for the next request."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=kept, keepalive_expiry=KEPT_S)
    return httpx.AsyncClient(verify=tls, proxy=proxy, limits=limits, timeout=_TIMEOUT, trust_env=False)


@asynccontextmanager
async def asked(
    http: httpx.AsyncClient,
    root: str,
    request: ServerRequest,
    *,
    to: str,
    headers: Headers = (),
    server_name: str | None = None,
) -> AsyncIterator[HttpAnswer]:
    """The answer to a request below `root`. `headers` go with its own; `server_name` is the one that TLS asks for.

    FleetUnavailable, a sentence with `to`, if there is none.
    """
    made = http.build_request(
        request.method,
        f"{root}/{request.target}",
        headers=[*_BARE, *request.headers, *headers],
        content=request.body if request.method == "POST" else None,
        extensions={"sni_hostname": server_name} if server_name else None,
    )
    try:
        response = await http.send(made, stream=True)
    except httpx.HTTPError as error:
        did = "can't be reached" if isinstance(error, _NEVER_REACHED) else "gave no answer"
        raise FleetUnavailable(f"{to} {did} ({_why(error)}).") from error
    try:
        yield HttpAnswer(response, to)
    finally:
        await response.aclose()


# As usage is read in the answers, they are not to be compressed.
_BARE = (("accept-encoding", "identity"), ("user-agent", "starforge"))


def _why(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


__all__ = ["HttpAnswer", "ServerAnswer", "asked", "client"]
