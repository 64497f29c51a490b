"""What becomes of the pieces of a log: lines with cursors, and before them what it has lost of the driver's output."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import datetime
from typing import IO

from starforge.adapters.kube.errors import UNREACHABLE, short
from starforge.adapters.kube.watch.logs.buffer import Buffer
from starforge.adapters.kube.watch.logs.cursor import Cursor, Piece, after, placed
from starforge.adapters.kube.watch.logs.loop import LogLoop
from starforge.adapters.kube.watch.logs.rayfile import RayFile
from starforge.domain.framing import Frame, read_frame, write_frame
from starforge.domain.observation import RawLine
from starforge.domain.redaction import redact_bytes

_CHUNK = 64 * 1024
# Pauses before a file that could not be read is asked for again.
AGAIN_S = (0.5, 2.0)
_log = logging.getLogger(__name__)


class Intake:
    """`cursor` is after what was added last. A gap in the driver's frames is filled from Ray's own file."""

    def __init__(self, cursor: Cursor | None, buffer: Buffer, loop: LogLoop, ray: RayFile) -> None:
        self.cursor = cursor
        self._buffer, self._loop, self._ray = buffer, loop, ray

    async def add(self, pieces: list[Piece]) -> None:
        ready: list[tuple[RawLine, Cursor]] = []
        for piece in pieces:
            frame = read_frame(piece.data)[1] if piece.ends and not piece.starts else None
            if frame and frame.span and self._lacks(frame, frame.span[0]):
                self._buffer.add(ready)
                ready = []
                await self._fill(piece, frame, frame.span[0])
            self.cursor = after(self.cursor, piece)
            if frame and frame.span:
                self.cursor = placed(self.cursor, max(frame.span[1], self.cursor.place or 0))
            line = RawLine(redact_bytes(piece.data), piece.stamp.at, goes_on=not piece.ends)
            ready.append((line, self.cursor))
        self._buffer.add(ready)

    def _lacks(self, frame: Frame, start: int) -> bool:
        place = self.cursor.place if self.cursor else None
        return not frame.begins if place is None else start > place

    async def _fill(self, piece: Piece, frame: Frame, end: int) -> None:
        """Adds what the output had up to `end`, if Ray still has it; else whoever reads the frames sees the gap."""
        cursor = self.cursor or Cursor(piece.stamp, 0)
        start = cursor.place or 0
        file = await self._fetched(start, end, frame.piece)
        if file is None:
            return
        with file:
            frames = [Frame(frame.at, (0, 0), b"^", b"")] if cursor.place is None else []
            while frames or start < end:
                await self._buffer.for_more()
                chunk = file.read(_CHUNK)
                frames += _framed(chunk, start, frame.at)
                start += len(chunk)
                lines = [(_line(each), placed(cursor, each.span[1])) for each in frames if each.span]
                self.cursor, frames = lines[-1][1], []
                self._buffer.add(lines)

    async def _fetched(self, start: int, end: int, then: bytes) -> IO[bytes] | None:
        for pause_s in (*AGAIN_S, None):
            try:
                return await self._loop.filling(lambda: self._ray.fetch(start, end, then), undo=_closed)
            except UNREACHABLE as error:
                _log.warning("Ray's file can't be read: %s", short(error))
            if pause_s is not None:
                await asyncio.sleep(pause_s)
        return None


def _closed(file: IO[bytes] | None) -> None:
    if file is not None:
        file.close()


def _line(frame: Frame) -> RawLine:
    return RawLine(redact_bytes(write_frame(frame)), frame.at)


def _framed(data: bytes, start: int, at: datetime) -> Iterator[Frame]:
    """Output as the runner would have written it, with the time of what came next, as nobody knows its own."""
    *lines, rest = data.split(b"\n")
    for line in lines:
        yield Frame(at, (start, start + len(line) + 1), b".", line)
        start += len(line) + 1
    if rest:
        yield Frame(at, (start, start + len(rest)), b"+", rest)
