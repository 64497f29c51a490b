"""A TCP proxy on this machine whose connections a test can cut, and whose other side it can change."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK = 65536
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: closing sends RST, as after a lost network."""


class Proxy:
    """Passes bytes on to 127.0.0.1:`target`; while `refuses`, new connections are reset at once."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.refuses = False
        self.cuts = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, name="proxy")]
        self._threads[0].start()

    def cut(self) -> None:
        """Reset every connection."""
        with self._lock:
            self.cuts += len(self._open) // 2
            for one in self._open:
                _reset(one)

    def close(self) -> None:
        self.refuses = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(timeout=10)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            if self.refuses:
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            server.settimeout(None)
        except OSError:
            _reset(client)
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        # Closed by whoever of the two ends last, so that neither number is used again under the other.
        left = threading.Semaphore(0)
        for source, sink in ((client, server), (server, client)):
            thread = threading.Thread(target=self._pump, args=(source, sink, left), name="proxy")
            self._threads.append(thread)
            thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, left: threading.Semaphore) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        if left.acquire(blocking=False):
            with self._lock:
                self._open -= {source, sink}
            source.close()
            sink.close()
        else:
            left.release()


def _reset(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(target: int) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
