"""Serves the signed links of a directory store over HTTP, as the gateway does; and a client for any signed request."""

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

from starforge.adapters.objects import DirectoryObjects
from starforge.domain.ports import Signed

_TIMEOUT_S = 10


@dataclass
class Clock:
    """The time of a directory store; it moves when it is told to."""

    time: datetime

    def __call__(self) -> datetime:
        return self.time


class _Handler(BaseHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        key, allowed, _ = self._verified("GET")
        if not allowed:
            return self._answer(403)
        return self._answer(200, self.server.store.read(key))

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key, allowed, only_new = self._verified("PUT")
        if not allowed:
            return self._answer(403)
        return self._answer(200 if self.server.store.put(key, body, only_new=only_new) else 412)

    def _verified(self, method: str) -> tuple[str, bool, bool]:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        key = unquote(parts.path).removeprefix("/objects/")
        return key, self.server.store.verify(key, method, query), self.server.store.must_be_new(query)

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Links are secrets, so requests are not printed."""


class _Server(ThreadingHTTPServer):
    store: DirectoryObjects


@contextmanager
def gateway() -> Iterator[tuple[str, Callable[[DirectoryObjects], None]]]:
    """Its base URL, and the function that says which store it serves."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", lambda store: setattr(server, "store", store)
        finally:
            server.shutdown()
            thread.join(timeout=10)


def send(signed: Signed, body: bytes | None = None, *, url: str | None = None) -> tuple[int, bytes]:
    """Status and body of the answer to a signed request, or to one that was changed to another `url`."""
    headers = dict(signed.headers) | {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url or signed.url, data=body, method=signed.method, headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""
