"""Connections for requests whose answer is read elsewhere: straight, and by way of a proxy."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kubernetes.client import Configuration
from urllib3.exceptions import HTTPError

from starforge.adapters.kube.dialing import Dialer
from tests.unit.kube.kube_server import Answer, serving


@contextmanager
def proxy(said: list[str]) -> Iterator[int]:
    """Notes what it is asked for, and refuses it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def refuse() -> None:
            connection, _ = listening.accept()
            with connection:
                said.append(connection.recv(4096).decode())
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=refuse)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(10)


def configuration(**changes: object) -> Configuration:
    made = Configuration()
    made.host, made.proxy, made.no_proxy = "https://kubernetes:6443", None, None
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_a_request_is_sent_with_its_headers_and_query() -> None:
    with serving(lambda _method, _path, _query: Answer((b"yes",))) as server:
        dialed = Dialer(configuration()).dial(f"{server.url}/log?follow=true", {"X-A": "b"}, timeout_s=5)
        with dialed:
            assert not dialed.getblocking()
            dialed.settimeout(5)
            assert dialed.recv(4096).startswith(b"HTTP/1.1 200 OK")
        assert server.asked == [("GET", "/log", {"follow": "true"})]


def test_nobody_at_the_other_end_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises((OSError, HTTPError)):
        Dialer(configuration()).dial(f"http://127.0.0.1:{port}/log", {}, timeout_s=5)


def test_a_proxy_is_asked_for_a_tunnel() -> None:
    said: list[str] = []
    with proxy(said) as port:
        dialer = Dialer(configuration(proxy=f"http://127.0.0.1:{port}"))
        with pytest.raises((OSError, HTTPError)):
            dialer.dial("https://kubernetes:6443/log", {}, timeout_s=5)
    assert said[0].startswith("CONNECT kubernetes:6443 HTTP/1.")


def test_a_host_that_needs_no_proxy_is_reached_without() -> None:
    with serving(lambda _method, _path, _query: Answer((b"yes",))) as server:
        host = f"http://127.0.0.1:{server.url.rpartition(':')[2]}"
        dialer = Dialer(configuration(host=host, proxy="http://nowhere:1", no_proxy="127.0.0.1"))
        dialer.dial(f"{server.url}/log", {}, timeout_s=5).close()
