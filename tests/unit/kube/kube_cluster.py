"""An API server with a memory: what is put into it is listed in pages, and watched from a version on."""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from typing import Any
from urllib.parse import parse_qs, urlsplit

KubeObject = dict[str, Any]
Query = dict[str, str]
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
BOOKMARK_S = 30.0
_HISTORY = 20_000


@dataclass(frozen=True)
class Change:
    version: int
    path: str
    name: str
    line: bytes


@dataclass
class Cluster:
    """Objects by collection and name. `asked` counts requests by what they were: list, watch, log or other."""

    objects: dict[str, dict[str, bytes]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    version: int = 10
    oldest: int = 0
    _history: deque[Change] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    _news: threading.Condition = field(default_factory=threading.Condition)
    closing: threading.Event = field(default_factory=threading.Event)

    def put(self, path: str, found: KubeObject) -> None:
        """Make or replace an object of a collection."""
        name = found["metadata"]["name"]
        with self._news:
            there = self.objects.setdefault(path, {})
            word = "MODIFIED" if name in there else "ADDED"
            self.version += 1
            found["metadata"]["resourceVersion"] = str(self.version)
            there[name] = json.dumps(found).encode()
            self._tell(word, path, name, there[name])

    def delete(self, path: str, name: str) -> None:
        with self._news:
            self.version += 1
            self._tell("DELETED", path, name, self.objects[path].pop(name))

    def compact(self) -> None:
        """Forget the past: whoever watches from an older version is told 410."""
        with self._news:
            self.oldest = self.version
            self._history.clear()

    def close(self) -> None:
        with self._news:
            self.closing.set()
            self._news.notify_all()

    def page(self, path: str, query: Query) -> tuple[int, bytes]:
        """A page of a list, after the name that `continue` has."""
        with self._news:
            there, version = sorted(self.objects.get(path, {}).items()), self.version
        after, limit = query.get("continue", ""), int(query.get("limit", "0")) or len(there)
        rest = [(name, text) for name, text in there if name > after]
        more = rest[limit - 1][0] if len(rest) > limit else ""
        metadata = json.dumps({"resourceVersion": str(version), "continue": more}).encode()
        items = b",".join(text for _, text in rest[:limit])
        return 200, b'{"metadata":' + metadata + b',"items":[' + items + b"]}"

    def changes(self, path: str, query: Query) -> Iterator[bytes]:
        """Lines of a watch until its time is over."""
        since, until = int(query["resourceVersion"]), time.monotonic() + float(query.get("timeoutSeconds", "300"))
        while not self.closing.is_set() and time.monotonic() < until:
            with self._news:
                if since < self.oldest:
                    yield _line("ERROR", json.dumps(GONE).encode())
                    return
                fresh = list(takewhile(lambda each: each.version > since, reversed(self._history)))[::-1]  # noqa: B023
                since = self.version
                if not fresh:
                    self._news.wait(min(BOOKMARK_S, until - time.monotonic()))
                    if since == self.version:
                        yield _line("BOOKMARK", b'{"metadata":{"resourceVersion":"%d"}}' % since)
                    continue
            yield from (each.line for each in fresh if each.path == path)

    def _tell(self, word: str, path: str, name: str, text: bytes) -> None:
        self._history.append(Change(self.version, path, name, _line(word, text)))
        self._news.notify_all()


def _line(word: str, text: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (word.encode(), text)


@contextmanager
def served(cluster: Cluster) -> Iterator[str]:
    """The address at which a cluster answers. A log has one line, and is followed until the cluster closes."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: texts[0] for name, texts in parse_qs(parts.query).items()}
            if parts.path.endswith("/log"):
                self._stream("log", _log(cluster, query))
            elif "watch" in query:
                self._stream("watch", cluster.changes(parts.path, query))
            else:
                self._page(*cluster.page(parts.path, query))

        def _page(self, status: int, body: bytes) -> None:
            cluster.asked["list"] += 1
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, what: str, lines: Iterator[bytes]) -> None:
            cluster.asked[what] += 1
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            try:
                for line in lines:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True  # nobody reads it any more

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 1024

    with Server(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}"
        finally:
            cluster.close()
            http.shutdown()
            thread.join()


def _log(cluster: Cluster, query: Query) -> Iterator[bytes]:
    yield b"2026-11-29T12:00:00.5Z hello\n"
    if "follow" in query:
        cluster.closing.wait()
