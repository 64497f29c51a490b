"""Brings one subscriber from its request to where it only has to be sent what comes."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from starforge.api.transport.encoding import encode_response
from starforge.api.transport.group import Group, Sink
from starforge.api.transport.openings import Run, refuse_cut
from starforge.api.transport.source import Joint, Source


class Place(Sink, Protocol):
    """A sink that can be waited for."""

    async def room(self) -> None:
        """Returns when it is no longer blocked."""
        ...


@dataclass(eq=False)
class Following:
    """One subscription, a user of `group` until `end`. Without a group, the opening is all of it."""

    place: Place
    run: Run
    key: str | None
    group: Group | None
    _behind: Joint | None = None
    _is_here: bool = True

    async def begin(self) -> None:
        """Returns when it has joined, or `place` was told that it ended. Raises RequestRefused."""
        if self.group is None:
            await self._open_alone(Source())
            self.place.ended(None)
            return
        await self._open(self.group, None)

    async def catch_up(self, behind: Joint) -> None:
        """As `begin`, after it fell behind."""
        if self.group is None:
            raise TypeError("a source that is not shared can't be resumed")
        self._behind = behind
        await self.place.room()
        await self._open(self.group, behind)
        self._behind = None

    @property
    def cursor(self) -> str | None:
        """What to resume with after what was sent; None while it is not known."""
        if self.group is None:
            return None
        return self.group.cursor_after(self._behind) if self._behind else self.group.cursor(self.place)

    def end(self) -> None:
        """It is told nothing more; safe to repeat."""
        if self.group is not None and self._is_here:
            self._is_here = False
            self.group.leave(self.place)

    async def _open(self, group: Group, told: Joint | None) -> None:
        await group.ready()
        with group.arriving():
            while True:
                joint = await self._told(group, told)
                if joint is None:
                    self.place.ended(None)
                    return
                told = told.then(joint) if told else joint
                if group.join(self.place, told):
                    return

    async def _told(self, group: Group, told: Joint | None) -> Joint | None:
        resume_at = told.position if told else None
        key = (self.key, None) if told is None else (None, resume_at)
        opening = await group.opening(key, self.run, resume_at)
        if opening is None:
            return await self._open_alone(Source(resume_at=resume_at), told)
        for step, payload in opening.results:
            if told is None or not told.knows(step):
                self.place.next(payload)
        return opening.joint

    async def _open_alone(self, source: Source, told: Joint | None = None) -> Joint | None:
        async with aclosing(self.run(source)) as responses:
            async for response in responses:
                if self.group is not None:
                    refuse_cut(response)
                if told is None or not told.knows(source.told_step()):
                    self.place.next(encode_response(response))
                    await self.place.room()
        return source.joint
