"""One live source for everybody who asked the same: executed once for each event, encoded once, sent to all."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.counting import Counts
from starforge.api.transport.encoding import encode_response
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.openings import Opening, Openings, Run
from starforge.api.transport.source import Cut, Joint, Source, Step

SENDS_PER_TURN = 500
"""Sends after which others get their turn on the event loop."""


class Sink(Protocol):
    """Where the results of one subscriber go."""

    @property
    def blocked(self) -> bool:
        """Whether so much waits to leave that nothing should be added."""
        ...

    def next(self, payload: bytes) -> None: ...

    def fell_behind(self, joint: Joint) -> None:
        """It got nothing after `joint`, and is no longer a member: open again from there when there is room."""
        ...

    def ended(self, refused: RequestRefused | None) -> None:
        """The source is over: by itself, or because of an error."""
        ...


@dataclass(eq=False)
class _Newcomer:
    """Somebody who may have been told already what the source tells now."""

    joint: Joint

    def wants(self, step: Step) -> bool:
        return not self.joint.knows(step) and (step.until > self.joint.position or step.ahead)

    def has_part_of(self, step: Step) -> bool:
        return step.since is not None and step.since < self.joint.position < step.until


class Group:
    """Those who share one source. It lives while somebody uses it, from before they open until they leave."""

    def __init__(self, run: Run, forget: Callable[["Group"], None], counts: Counts) -> None:
        self._run = run
        self._counts = counts
        self._forget = forget
        self._members: dict[Sink, None] = {}
        self._newcomers: dict[Sink, _Newcomer] = {}
        self._users = 0
        self._arriving = 0
        self._ahead: dict[str, tuple[Step, bytes]] = {}
        self._openings = Openings()
        self._ended: RequestRefused | bool = False
        self.position = -1
        """Everything up to here was sent to the members."""
        self._source = Source(live=True, unsettled=lambda: bool(self._arriving or self._newcomers))
        self._task = asyncio.create_task(self._tell(), name="shared source")

    @property
    def size(self) -> int:
        return len(self._members) + len(self._newcomers)

    # --- joining and leaving

    def use(self) -> None:
        """Somebody more is here, until `leave`."""
        self._users += 1

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Somebody is being told what only they have to be told."""
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1

    async def ready(self) -> None:
        """Returns when nothing can be missed any more. Raises RequestRefused if the source can't begin."""
        listening = asyncio.ensure_future(self._source.listening.wait())
        try:
            await asyncio.wait({listening, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening.cancel()
        if isinstance(self._ended, RequestRefused):
            raise self._ended.again()

    async def opening(self, key: Hashable, run: Run, resume_at: int | None) -> Opening | None:
        """What those are told who begin at the same place; None if it is too much to be shared."""
        return await self._openings.opening(key, run, resume_at, told=self.position)

    def join(self, sink: Sink, joint: Joint) -> bool:
        """From now on `sink` gets what comes; False if it has missed something since its opening ended."""
        if self._ended:
            sink.ended(self._ended if isinstance(self._ended, RequestRefused) else None)
            return True
        if joint.topic != self._source.topic:
            sink.ended(
                RequestRefused(ErrorCode.UNAVAILABLE, "What you follow is just being replaced: subscribe again.")
            )
            return True
        if joint.position < self.position:
            return False
        newcomer = _Newcomer(joint)
        for subject, (step, payload) in self._ahead.items():
            if self._source.ahead.get(subject) == step.revision and newcomer.wants(step):
                sink.next(payload)
        if self.position >= joint.settled_at:
            self._members[sink] = None
        else:
            self._newcomers[sink] = newcomer
        return True

    def cursor(self, sink: Sink) -> str | None:
        """After what `sink` was sent; None for whoever is no member."""
        if sink in self._members:
            return self._source.cursor(self.position)
        newcomer = self._newcomers.get(sink)
        return self._source.cursor(max(self.position, newcomer.joint.position)) if newcomer else None

    def cursor_after(self, joint: Joint) -> str | None:
        return self._source.cursor(joint.position)

    def leave(self, sink: Sink) -> None:
        """The end of `use`; with the last one, all that runs for the group ends."""
        self._members.pop(sink, None)
        self._newcomers.pop(sink, None)
        self._users -= 1
        if not self._users:
            self._forget(self)
            self._task.cancel()
            self._openings.cancel()

    # --- telling

    async def _tell(self) -> None:
        try:
            async with aclosing(self._run(self._source)) as responses:
                async for response in responses:
                    await self._told(response)
            self._ended = True
        except RequestRefused as refused:
            self._ended = refused
        except Exception as error:  # noqa: BLE001  because_of logs it
            self._ended = RequestRefused.because_of(error)
        self._forget(self)
        for count, sink in enumerate([*self._members, *self._newcomers], 1):
            sink.ended(self._ended.again() if isinstance(self._ended, RequestRefused) else None)
            if count % SENDS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _told(self, response: dict[str, Any]) -> None:
        if isinstance(response, Cut):
            self._source.again = True
        else:
            await self._send(self._source.told_step(), encode_response(response))

    async def _send(self, step: Step, payload: bytes) -> None:
        self._counts.executed += 1
        before, self.position = self.position, max(self.position, step.until)
        ahead = dict(self._source.ahead)
        ahead.pop(step.subject or "", None)
        self._remember(step, payload)
        self._openings.drop(self.position)
        members = list(self._members)
        for sink, newcomer in list(self._newcomers.items()):
            self._send_newcomer(sink, newcomer, step, payload, before)
        for count, sink in enumerate(members, 1):
            if sink not in self._members:
                continue
            if sink.blocked:
                self._drop(sink, Joint(before, before, ahead))
            else:
                sink.next(payload)
                self._counts.sent += 1
            if count % SENDS_PER_TURN == 0:
                await asyncio.sleep(0)
        if step.at is not None:
            self._counts.lag.add(max(0.0, time.time() - step.at))

    def _send_newcomer(self, sink: Sink, newcomer: _Newcomer, step: Step, payload: bytes, before: int) -> None:
        if newcomer.wants(step):
            if sink.blocked or newcomer.has_part_of(step):
                position = max(before, newcomer.joint.position)
                self._drop(sink, replace(newcomer.joint, position=position))
                return
            sink.next(payload)
            self._counts.sent += 1
        if step.until >= newcomer.joint.settled_at:
            del self._newcomers[sink]
            self._members[sink] = None

    def _drop(self, sink: Sink, joint: Joint) -> None:
        self._members.pop(sink, None)
        self._newcomers.pop(sink, None)
        self._counts.fell_behind += 1
        sink.fell_behind(joint)

    def _remember(self, step: Step, payload: bytes) -> None:
        """Results ahead of their place, for those who join before that place is reached."""
        if step.subject is not None and step.ahead:
            self._ahead[step.subject] = step, payload
        for subject in [one for one in self._ahead if one not in self._source.ahead]:
            del self._ahead[subject]
