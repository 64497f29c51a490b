"""What a subscription's resolver and the transport tell each other about a source that many may share.

A shared source is told in two parts. The *opening* is one subscriber's own: a snapshot, or what lies behind a cursor,
and it ends with a `Joint`. What comes after that is *live*: resolved once, and sent to all who have joined. Places are
numbers that only rise, the feed's positions.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


class Cut(dict[str, Any]):
    """A response of which the database could not be asked for a part, so that it is worth asking again."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one result is about: with it everything up to `until` was told.

    A result about state has its `subject` and `revision`, and is `ahead` if that revision is of a later place than
    `until`, as the newest is what is told. `at` is when it was committed, in seconds since the epoch; None for what
    was not. A result that can't be told in part, such as many lines, begins after `since`.
    """

    until: int
    subject: str | None = None
    revision: int = 0
    ahead: bool = False
    at: float | None = None
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Joint:
    """Up to where somebody was told: all up to `position`, and of each subject of `told` that revision.

    From `settled_at` on no revision of `told` can come again. `topic` is that of the source.
    """

    position: int
    settled_at: int
    told: Mapping[str, int]
    topic: str = ""

    def knows(self, step: Step) -> bool:
        """Whether the revision, or a newer one, was told already."""
        return step.subject is not None and self.told.get(step.subject, -1) >= step.revision

    def then(self, later: "Joint") -> "Joint":
        """Where somebody is who was told up to here, and then up to `later`."""
        settled_at = max(self.settled_at, later.settled_at)
        told = {**self.told, **later.told} if self.told else later.told
        return Joint(later.position, settled_at, told, later.topic)


def _settled() -> bool:
    return False


def _no_cursor(place: int) -> str | None:
    return None


@dataclass
class Source:
    """One execution of a subscription: `live`, or the opening, from place `resume_at` on if that is given and from
    where the arguments say otherwise.

    The resolver sets `step` before each result and `joint` at the end of an opening, and `listening` as soon as a live
    source misses nothing more. After a result that could not be whole, `again` asks it for the same once more.
    `ahead` are the revisions that were told before their place was reached.
    `cursor` is what clients resume with after a place. `topic` is what the arguments came to mean, if that may differ from time to time.
    `unsettled` tells a live source that somebody joins who may hold what it does not know of.
    """

    live: bool = False
    resume_at: int | None = None
    step: Step | None = None
    joint: Joint | None = None
    listening: asyncio.Event = field(default_factory=asyncio.Event)
    again: bool = False
    ahead: dict[str, int] = field(default_factory=dict)
    topic: str = ""
    cursor: Callable[[int], str | None] = _no_cursor
    unsettled: Callable[[], bool] = _settled

    def told_step(self) -> Step:
        """What the result that just came is about; TypeError from a resolver that tells of no source."""
        if self.step is None:
            raise TypeError("a shared source gave a result without a step")
        return self.step

    def take_again(self) -> bool:
        again, self.again = self.again, False
        return again


@runtime_checkable
class TellsSource(Protocol):
    """A context that hands the source on to its resolvers."""

    source: Source | None
