"""Answers that are being read, so that whoever wants to stop can wake those who wait for the next byte."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

# What reading from a connection that another thread has shut down may raise, besides ending.
BROKEN = (HTTPError, OSError, ValueError, AttributeError)


class Streams:
    """The open answers of one observer, and whether it has been stopped."""

    def __init__(self) -> None:
        self.halted = threading.Event()
        self._open: dict[int, BaseHTTPResponse] = {}
        self._lock = threading.Lock()

    @contextmanager
    def reading(self, response: BaseHTTPResponse) -> Iterator[None]:
        """`response` is ended by `halt` within the block."""
        with self._lock:
            self._open[id(response)] = response
        try:
            if self.halted.is_set():
                _shut(response)
            yield
        finally:
            with self._lock:
                del self._open[id(response)]

    def halt(self) -> None:
        """Ends everything, now and from now on."""
        self.halted.set()
        with self._lock:
            for response in self._open.values():
                _shut(response)


def _shut(response: BaseHTTPResponse) -> None:
    try:
        response.shutdown()
    except (OSError, ValueError, RuntimeError):
        return  # It has ended by itself, and its reader knows.
