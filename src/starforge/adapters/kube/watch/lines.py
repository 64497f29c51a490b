"""Lines of an answer as they come."""

from collections.abc import Iterator

from urllib3.response import BaseHTTPResponse

_CHUNK = 64 * 1024


def chunks(response: BaseHTTPResponse) -> Iterator[bytes]:
    """What has arrived, without waiting for more than there is; ends with the answer."""
    while True:
        chunk = response.read1(_CHUNK, decode_content=True)
        if not chunk:
            return
        yield chunk


class LineSplitter:
    """Cuts bytes into lines without their ends."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        *ends, rest = chunk.split(b"\n")
        lines = []
        for piece in ends:
            self._held += piece
            lines.append(bytes(self._held))
            self._held.clear()
        self._held += rest
        return lines

    def rest(self) -> bytes:
        """What came after the last line end."""
        return bytes(self._held)
