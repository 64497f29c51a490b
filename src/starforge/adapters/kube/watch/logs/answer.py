"""An HTTP answer that is read as far as it has come, on the loop, without ever waiting in a read."""

import asyncio
import contextlib
import socket
import ssl

import httptools

CHUNK = 64 * 1024
_NOT_YET = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Refused(Exception):
    """The server said no: its status and what it said."""

    def __init__(self, status: int, body: bytes, retry_after: str) -> None:
        super().__init__(status)
        self.status, self.body, self.retry_after = status, body, retry_after


class Broken(Exception):
    """The answer ended before it was whole."""


class Answer:
    """Await `ready`, then `take`: the next bytes, which may be none yet; None when the answer is whole and over."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._sock, self._loop = sock, loop
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._is_over = self._is_broken = False
        self._waits_until: asyncio.Future[None] | None = None
        self._has_more = True
        self._refusal: int | None = None
        self._retry_after = ""
        self._is_stopped = False
        self.heard_at = loop.time()

    async def ready(self) -> None:
        """Waits until there is something to take. Broken if `stop` was called."""
        if self._has_more:
            await asyncio.sleep(0)  # others get their turn
        elif not self._is_stopped:
            self._waits_until = self._loop.create_future()
            self._loop.add_reader(self._sock, self._arrived)
            try:
                await self._waits_until
            finally:
                self._loop.remove_reader(self._sock)
        if self._is_stopped:
            raise Broken

    def take(self) -> bytes | None:
        """Refused or Broken if there is no whole answer."""
        self._has_more = self._receive()
        self.heard_at = self._loop.time()
        if self._refusal and (self._is_over or self._is_broken or len(self._body) >= CHUNK):
            raise Refused(self._refusal, bytes(self._body), self._retry_after)
        if self._refusal:
            return b""
        taken = bytes(self._body)
        self._body.clear()
        if not taken and self._is_broken:
            raise Broken
        return None if self._is_over and not taken else taken

    def stop(self) -> None:
        """Whoever waits for more gets Broken."""
        self._is_stopped = True
        self._arrived()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.close()

    def _arrived(self) -> None:
        if self._waits_until and not self._waits_until.done():
            self._waits_until.set_result(None)

    def _receive(self) -> bool:
        """Whether there may be more right now."""
        while not self._is_over and len(self._body) < CHUNK:
            try:
                data = self._sock.recv(CHUNK)
            except _NOT_YET:
                return False
            except OSError:
                data = b""
            self._is_broken = not data or not self._parsed(data)
            if self._is_broken:
                break  # what came before is taken first
        return True

    def _parsed(self, data: bytes) -> bool:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            return False
        return True

    # --- what the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._refusal = None if 200 <= status < 300 else status

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._is_over = True
