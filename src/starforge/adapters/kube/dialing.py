"""A request of which the answer is read by whoever holds the socket, without a thread that waits for it."""

import socket
import ssl
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import urlsplit

from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import Url, parse_url

# Who is at the other end of a log that is silent is asked after 30 s, and is gone after 9 questions of 15 s.
_OPTIONS: list[tuple[int, int, int | bytes]] = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 9),
]


class Dialer:
    """Makes connections as the official client does, which gives none away. They share what TLS needs.

    A proxy is used by way of CONNECT, and has to be reached by http.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._proxy = _proxy(configuration)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return _tls(self.configuration)

    def dial(self, url: str, headers: Mapping[str, str], *, timeout_s: float) -> socket.socket:
        """A socket on which a GET was sent, and that does not block. OSError or HTTPError if that fails."""
        parts = urlsplit(url)
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port, timeout_s)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            connection.request("GET", target, headers=headers)
            sock = connection.sock
            if not isinstance(sock, socket.socket):
                raise OSError("the connection was lost as soon as it was made")
            sock.setblocking(False)
        except BaseException:
            connection.close()
            raise
        return sock

    def _connection(self, scheme: str, host: str, port: int | None, timeout_s: float) -> HTTPConnection:
        if scheme != "https":
            return HTTPConnection(host, port, timeout=timeout_s, socket_options=_OPTIONS)
        proxy = self._proxy
        to, to_port = (proxy.host or "", proxy.port) if proxy else (host, port)
        connection = HTTPSConnection(
            to,
            to_port,
            timeout=timeout_s,
            socket_options=_OPTIONS,
            cert_reqs=self._tls.verify_mode,
            ssl_context=self._tls,
            assert_hostname=False if self.configuration.assert_hostname is False else None,
            server_hostname=self.configuration.tls_server_name or None,
        )
        if proxy:
            connection.set_tunnel(host, port, headers=self.configuration.proxy_headers)
        return connection


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _proxy(configuration: Configuration) -> Url | None:
    if not configuration.proxy or should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        return None
    return parse_url(configuration.proxy)
