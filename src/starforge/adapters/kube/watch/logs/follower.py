"""Follows the log of one container until it has ended and all of it was read."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from urllib3.response import BaseHTTPResponse

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import UNREACHABLE
from starforge.adapters.kube.watch.backoff import Backoff
from starforge.adapters.kube.watch.lines import LineSplitter, chunks
from starforge.adapters.kube.watch.logs.buffer import Buffer
from starforge.adapters.kube.watch.logs.cursor import Cursor, after, split_stamp
from starforge.adapters.kube.watch.logs.resume import Line, Resume
from starforge.adapters.kube.watch.streams import BROKEN, Streams
from starforge.domain.logs import LINE_MAX_BYTES
from starforge.domain.observation import RawLine
from starforge.domain.redaction import redact_bytes

# A log that says nothing for so long is asked for again, in case that nobody is at the other end any more.
QUIET_S = 300.0
_STAMP_BYTES = 40


@dataclass(frozen=True)
class Target:
    """A container's log; `source` names it as LogSeen does."""

    source: str
    path: str
    container: str


class Ends:
    """What a follower must know about its container: that it ended, that its Pod is gone. Waiting wakes on either."""

    def __init__(self, *, ended: bool = False) -> None:
        self.ended = ended
        self.gone = False
        self._news = threading.Condition()

    def say(self, *, ended: bool = False, gone: bool = False) -> None:
        with self._news:
            if (ended and not self.ended) or (gone and not self.gone):
                self.ended, self.gone = self.ended or ended or gone, self.gone or gone
                self._news.notify_all()

    def wake(self) -> None:
        with self._news:
            self._news.notify_all()

    def wait(self, seconds: float, *, unless: Callable[[], bool]) -> None:
        with self._news:
            if not unless():
                self._news.wait(seconds)


class Follower:
    """`run` is a thread's work: lines go into the buffer, which is closed at the end of the log."""

    def __init__(
        self, api: KubeApi, target: Target, cursor: Cursor | None, *, buffer: Buffer, ends: Ends, streams: Streams
    ) -> None:
        self._api, self._target, self._cursor = api, target, cursor
        self._buffer, self._ends, self._streams = buffer, ends, streams
        self._backoff = Backoff(first_s=0.25, longest_s=10.0)

    def run(self) -> None:
        while not self._streams.halted.is_set():
            ended, gone = self._ends.ended, self._ends.gone
            whole = self._read(follow=not ended)
            if self._streams.halted.is_set():
                return
            # Read to its end after it is known to have ended, a log is whole; a Pod that is gone has no more to give.
            if gone or (ended and whole):
                self._buffer.close()
                return
            self._pause(ended=ended, gone=gone)

    def _pause(self, *, ended: bool, gone: bool) -> None:
        def news() -> bool:
            return self._streams.halted.is_set() or (self._ends.ended, self._ends.gone) != (ended, gone)

        self._ends.wait(self._backoff.next_s(), unless=news)

    def _read(self, *, follow: bool) -> bool:
        """Reads what there is, with `follow` also what comes; whether the answer was whole."""
        query: dict[str, str | int] = {"container": self._target.container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if self._cursor:
            query["sinceTime"] = self._cursor.since
        try:
            with self._api.stream(self._target.path, query, quiet_s=QUIET_S) as response:
                return self._take(response)
        except UNREACHABLE:
            return False  # Whatever it is, it passes, or the watch will say that the Pod is gone.

    def _take(self, response: BaseHTTPResponse) -> bool:
        resume, splitter = Resume(self._cursor), LineSplitter(LINE_MAX_BYTES + _STAMP_BYTES)
        with self._streams.reading(self._target.source, response):
            try:
                for chunk in chunks(response):
                    self._add(resume, splitter.feed(chunk))
                    self._backoff.reset()
            except BROKEN:
                return False
        # The last line of a log may have no end; while the container runs it is read again when it has.
        self._add(resume, [splitter.rest()] if splitter.rest() and self._ends.ended else [])
        self._put(resume.end())
        return True

    def _add(self, resume: Resume, lines: list[bytes]) -> None:
        found: list[Line] = []
        for line in lines:
            stamped = split_stamp(line)
            if stamped is not None:
                found += resume.feed(*stamped)
        self._put(found)

    def _put(self, lines: list[Line]) -> None:
        ready = []
        for stamp, data in lines:
            self._cursor = after(self._cursor, stamp)
            ready.append((RawLine(redact_bytes(data), stamp.at), self._cursor))
        self._buffer.add(ready)
