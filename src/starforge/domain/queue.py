"""A job's place in the queue of StarForge, where a RayJob is only made once all pools of it fit."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Queueing(StrEnum):
    """Whether jobs queue: AUTO unless another queue of the cluster decides (Kueue)."""

    OFF = "OFF"
    AUTO = "AUTO"
    ON = "ON"


class QueueKind(StrEnum):
    """Who decides about a queue."""

    STARFORGE = "STARFORGE"
    KUEUE = "KUEUE"


@dataclass(frozen=True)
class QueuePlace:
    """What was decided last about an attempt that queues, or how it got its turn at `admitted_at`.

    `position` counts from 1 and `gpus_ahead` what those in front ask for; both are None before the first decision and
    from its turn on. `estimated_start_at` is when it may start if everybody keeps to their clocks, None if that can't
    be told.
    """

    decision: str
    decided_at: datetime
    position: int | None = None
    gpus_ahead: int | None = None
    estimated_start_at: datetime | None = None
    admitted_at: datetime | None = None


FIRST = "It has just come into the queue."


def entered(at: datetime) -> QueuePlace:
    """The place of an attempt that nobody has looked at yet."""
    return QueuePlace(FIRST, at)
