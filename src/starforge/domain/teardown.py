"""Removal of what an attempt had in the cluster: proof, not "delete sent"."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from starforge.domain.reason import ObjectRef, Reason


class TeardownState(StrEnum):
    AWAITING_ARCHIVE = "AWAITING_ARCHIVE"
    DELETING = "DELETING"
    BLOCKED = "BLOCKED"
    RELEASED = "RELEASED"


@dataclass(frozen=True)
class RemainingObject:
    """A cluster object that has yet to go, with the finalizers that hold it."""

    object: ObjectRef
    deletion_requested_at: datetime | None = None
    finalizers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Teardown:
    state: TeardownState
    started_at: datetime
    remaining: tuple[RemainingObject, ...] = ()
    reason: Reason | None = None
    released_at: datetime | None = None
