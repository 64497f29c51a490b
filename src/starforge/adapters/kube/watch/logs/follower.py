"""Follows the log of one container until it has ended and all of it was read."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass
from enum import Enum, auto

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import KubeApi, Query
from starforge.adapters.kube.errors import UNREACHABLE, short
from starforge.adapters.kube.watch.backoff import Backoff
from starforge.adapters.kube.watch.logs.answer import Answer, Broken, Refused
from starforge.adapters.kube.watch.logs.buffer import Buffer
from starforge.adapters.kube.watch.logs.cursor import Cursor, Piece
from starforge.adapters.kube.watch.logs.intake import Intake
from starforge.adapters.kube.watch.logs.loop import LogLoop
from starforge.adapters.kube.watch.logs.pieces import Pieces
from starforge.adapters.kube.watch.logs.rayfile import RayFile
from starforge.adapters.kube.watch.logs.resume import Resume
from starforge.adapters.kube.watch.logs.slots import Slots

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0
# Refused so often in a row, a log is said to be interrupted; these answers alone are no trouble, but come and go.
REFUSALS = 3
_USUAL = (400, 404, 429)
_UNAUTHORIZED = 401


@dataclass(frozen=True)
class Target:
    """A container's log; `source` names it as LogSeen does, `previous` is its run before it was restarted."""

    source: str
    pod: str
    path: str
    container: str
    previous: bool = False


class Read(Enum):
    """What came of asking for a log: all that there is, a part of it, or nothing."""

    WHOLE = auto()
    BROKEN = auto()
    REFUSED = auto()


@dataclass(frozen=True)
class Ends:
    """What is known of a container: that it has ended, that its Pod is gone, which is an end too."""

    ended: bool = False
    gone: bool = False


class Follower:
    """`run` is a task's work: lines go into the buffer, which is closed at the end of the log."""

    def __init__(
        self,
        api: KubeApi,
        target: Target,
        cursor: Cursor | None,
        *,
        ends: Ends,
        buffer: Buffer,
        loop: LogLoop,
        slots: Slots,
        ray: RayFile,
    ) -> None:
        self._api, self._target, self._ends = api, target, ends
        self._buffer, self._loop, self._slots = buffer, loop, slots
        self._intake = Intake(cursor, buffer, loop, ray)
        self._backoff = Backoff(first_s=FIRST_PAUSE_S, longest_s=LONGEST_PAUSE_S)
        self._news = asyncio.Event()
        self._problem = "it could not be asked for"
        self._refusals = 0
        self._is_interrupted = False

    def say(self, ends: Ends) -> None:
        """Notes what is new of the container; called on the loop."""
        if ends.gone > self._ends.gone or ends.ended > self._ends.ended:
            self._ends = ends
            self._news.set()

    async def run(self) -> None:
        whole = False
        while True:
            ends = self._ends
            self._news.clear()
            # After an interruption it is read to its end first, as one that is followed and silent tells nothing.
            read = await self._read(follow=not ends.ended and not self._is_interrupted)
            self._note(read)
            whole = read is Read.WHOLE or (whole and read is Read.REFUSED)
            # Read to its end after it is known to have ended, a log is whole; a Pod that is gone has no more to give.
            if ends.ended and read is Read.WHOLE:
                return self._buffer.close()
            if ends.gone:
                return self._buffer.close(None if whole else self._missing())
            await self._pause()

    def _note(self, read: Read) -> None:
        if read is Read.WHOLE and self._is_interrupted:
            self._is_interrupted = False
            self._buffer.interrupt(None)
        if self._refusals >= REFUSALS and not self._is_interrupted:
            self._is_interrupted = True
            self._buffer.interrupt(self._problem)

    async def _read(self, *, follow: bool) -> Read:
        """Reads what there is, with `follow` also what comes."""
        cursor = self._intake.cursor
        query: dict[str, str | int] = {"container": self._target.container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if self._target.previous:
            query["previous"] = "true"
        if cursor and cursor.count:
            query["sinceTime"] = cursor.since
        async with self._slots.turn():
            return await self._ask(query)

    async def _ask(self, query: Query, *, anew: bool = False) -> Read:
        """Once more with credentials that were read `anew`, if those that it showed are not good any more."""
        shown = self._api.credentials
        try:
            sock = await self._loop.opening(lambda: self._api.dial(self._target.path, query), undo=_closed)
        except UNREACHABLE as error:
            self._problem = short(error)
            return Read.REFUSED
        answer = Answer(sock, self._loop.loop)
        try:
            with self._slots.reading(self._target.source, answer):
                return await self._take(answer)
        except Refused as refused:
            if refused.status == _UNAUTHORIZED and not anew and await self._renewed(shown):
                return await self._ask(query, anew=True)
            self._problem = _said(refused)
            self._refusals += refused.status not in _USUAL
            return Read.REFUSED

    async def _renewed(self, refused: object) -> bool:
        return await self._loop.opening(lambda: self._api.renew(refused), undo=bool)

    async def _take(self, answer: Answer) -> Read:
        resume, pieces = Resume(self._intake.cursor), Pieces()
        try:
            while (chunk := await self._next(answer)) is not None:
                await self._add(resume, pieces.feed(chunk))
        except Broken:
            self._problem = "the connection broke"
            return Read.BROKEN
        # The last line of a log may have no end; while the container runs it is read again when it has.
        await self._add(resume, pieces.end() if self._ends.ended else [])
        await self._intake.add(resume.end())
        self._refusals = 0
        return Read.WHOLE

    async def _next(self, answer: Answer) -> bytes | None:
        await answer.ready()
        await self._buffer.for_more()
        return answer.take()

    async def _add(self, resume: Resume, pieces: list[Piece]) -> None:
        if pieces:
            self._backoff.reset()
            self._refusals = 0
            await self._intake.add([new for piece in pieces for new in resume.feed(piece)])

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), self._backoff.next_s())

    def _missing(self) -> str:
        return f"Pod {self._target.pod} was gone before its log was read to the end: {self._problem}."


def _closed(sock: socket.socket) -> None:
    sock.close()


def _said(refused: Refused) -> str:
    error = ApiException(status=refused.status)
    error.body = refused.body.decode(errors="replace")
    return f"the Kubernetes API answered {refused.status}: {short(error)}".rstrip(".")
