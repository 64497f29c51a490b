"""Keeps web pages out of a gateway that runs on somebody's own machine."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HTTP_SCHEMES = {"ws": "http", "wss": "https"}


def guard(app: ASGIApp, *, hosts: Collection[str], origins: Collection[str] = ()) -> ASGIApp:
    """`app` behind both checks.

    `hosts` are names that the gateway goes by, without port (a page that rebinds its own name to 127.0.0.1 is told
    apart by its Host header); `origins` (for example `http://localhost:5173`) are the pages that may use it beside
    its own, which get CORS headers.
    """
    if origins:
        app = CORSMiddleware(
            app,
            allow_origins=list(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-starforge-csrf"],
        )
    return HostOriginGuard(app, hosts=frozenset(hosts), origins=frozenset(origins))


class HostOriginGuard:
    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], origins: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope) if scope["type"] in ("http", "websocket") else None
        if problem is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await PlainTextResponse(problem + "\n", 403)(scope, receive, send)
        else:
            await receive()  # websocket.connect
            await send({"type": "websocket.close", "code": 1008, "reason": problem})

    def _problem(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if _without_port(host).lower() not in self._hosts:
            return f"This gateway is not called '{host}': use one of {', '.join(sorted(self._hosts))}."
        origin = headers.get("origin")
        scheme = _HTTP_SCHEMES.get(scope["scheme"], scope["scheme"])
        if origin is not None and origin != f"{scheme}://{host}" and origin not in self._origins:
            return f"Pages from '{origin}' may not use this gateway: allow their origin in its settings."
        return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host
