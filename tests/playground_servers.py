"""Servers of playgrounds by a script: raw sockets, so that a test decides about each byte and sees each."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

PATIENCE_S = 60
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Heard:
    """One request as it came, and the connection to answer it on."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: socket.socket

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    def named(self, name: str) -> list[str]:
        return [value for given, value in self.headers if given == name]

    def send(self, text: bytes) -> None:
        self.connection.sendall(text)

    def chunk(self, text: bytes) -> None:
        self.send(b"%x\r\n%b\r\n" % (len(text), text))

    def event(self, text: bytes) -> None:
        self.chunk(b"data: %b\n\n" % text)

    def end(self) -> None:
        self.send(b"0\r\n\r\n")

    def whole(self, body: bytes, status: str = "200 OK", **headers: str) -> None:
        kind = headers.pop("content_type", "application/json")
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        self.send(head.encode("latin-1") + body)

    def cut(self) -> None:
        """Close without an end."""
        self.connection.shutdown(socket.SHUT_RDWR)

    def gone(self) -> None:
        """Return when the other side has closed."""
        self.connection.settimeout(PATIENCE_S)
        try:
            while self.connection.recv(1024):
                pass
        except ConnectionError:
            return


Answer = Callable[[Heard], None]


@dataclass
class Script:
    """`answer` is called for each request, in a thread of its own; a failure of it is raised when the test ends."""

    answer: Answer = lambda heard: heard.whole(b"{}")
    heard: list[Heard] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def scripted() -> Iterator[Script]:
    script = Script()
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        script.port = listening.getsockname()[1]
        threading.Thread(target=_accept, args=(listening, script), daemon=True).start()
        try:
            yield script
        finally:
            listening.shutdown(socket.SHUT_RDWR)
    if script.failures:
        raise script.failures[0]


def _accept(listening: socket.socket, script: Script) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(connection, script), daemon=True).start()


def _serve(connection: socket.socket, script: Script) -> None:
    try:
        with connection, connection.makefile("rb") as lines:
            while (heard := _read(lines, connection)) is not None:
                script.heard.append(heard)
                script.answer(heard)
    except ConnectionError:
        return  # whoever asked is gone
    except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
        script.failures.append(error)


def _read(lines: Any, connection: socket.socket) -> Heard | None:
    first = lines.readline()
    if not first:
        return None
    headers = []
    while (line := lines.readline().rstrip(b"\r\n")) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name.lower(), value.strip()))
    body = lines.read(int(dict(headers).get("content-length", "0")))
    return Heard(first.decode("latin-1").rstrip("\r\n"), headers, body, connection)


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error of an answer, which has to be one of the OpenAI API."""
    body = response.json()
    assert set(body) == {"error"}, body
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return dict(body["error"])
