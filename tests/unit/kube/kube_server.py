"""A small API server: each path has answers that are given in turn, the last one for ever."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.settings import KubeConfig

Query = dict[str, str]


@dataclass(frozen=True)
class Answer:
    """`lines` come first; then the answer ends, breaks off (`cut`), or stays open until the test ends it."""

    lines: tuple[bytes, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    then: str = "end"


def as_json(body: Any, status: int = 200, **headers: str) -> Answer:
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return Answer((json.dumps(body).encode(),), status, named)


def status(code: int, reason: str = "", message: str = "no", **headers: str) -> Answer:
    return as_json({"kind": "Status", "code": code, "reason": reason, "message": message}, code, **headers)


def listed(*objects: Any, version: str = "10", more: str = "") -> Answer:
    return as_json({"items": list(objects), "metadata": {"resourceVersion": version, "continue": more}})


def changes(*pairs: tuple[str, Any], then: str = "end") -> Answer:
    lines = tuple(json.dumps({"type": kind, "object": found}).encode() + b"\n" for kind, found in pairs)
    return Answer(lines, then=then)


@dataclass
class Server:
    """`answer` decides by method, path and query; `asked` is what was asked, in order, `shown` with which tokens."""

    answer: Callable[[str, str, Query], Answer]
    asked: list[tuple[str, str, Query]] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def api(self, namespace: str = "ns") -> KubeApi:
        return KubeApi(KubeConfig(namespace=namespace, api_server=self.url, token="secret"))


@contextmanager
def serving(answer: Callable[[str, str, Query], Answer]) -> Iterator[Server]:
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            query = {name: texts[0] for name, texts in parse_qs(parts.query).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.bodies.append(json.loads(body) if body else None)
            server.shown.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
            server.asked.append((self.command, parts.path, query))
            _send(self, server.answer(self.command, parts.path, query), server.closing)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            http.shutdown()
            thread.join()


def _send(handler: BaseHTTPRequestHandler, answer: Answer, closing: threading.Event) -> None:
    handler.send_response(answer.status)
    for name, text in answer.headers:
        handler.send_header(name, text)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for line in answer.lines:
        handler.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
    handler.wfile.flush()
    if answer.then == "stay":
        closing.wait(30)
    if answer.then == "end":
        handler.wfile.write(b"0\r\n\r\n")
    else:
        handler.close_connection = True
