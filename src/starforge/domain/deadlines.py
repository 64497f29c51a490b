"""The three clocks of an attempt, stored as due times: one payload serves everybody, any worker can check them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from starforge.domain.spec import Deadlines


class ClockKind(StrEnum):
    QUEUE = "QUEUE"
    PRE_RUNNING = "PRE_RUNNING"
    ACTIVE = "ACTIVE"


class ClockState(StrEnum):
    NOT_STARTED = "NOT_STARTED"
    RUNNING = "RUNNING"
    GRACE = "GRACE"
    STOPPED = "STOPPED"
    EXPIRED = "EXPIRED"
    OFF = "OFF"


RUNS = frozenset({ClockState.RUNNING, ClockState.GRACE})
AWAY = timedelta(seconds=30)
"""An outage: for so long nobody could act for a job, as we or its fleet were away."""
OUTAGE_GRACE = timedelta(seconds=60)
"""What a job is given after an outage before any of its clocks ends it."""


@dataclass(frozen=True)
class Clock:
    """One limit; `limit_s` is None when it is off."""

    kind: ClockKind
    state: ClockState
    limit_s: int | None
    started_at: datetime | None = None
    due_at: datetime | None = None
    ended_at: datetime | None = None


Clocks: TypeAlias = tuple[Clock, ...]


def new_clocks(limits: Deadlines) -> Clocks:
    """The clocks of a new attempt, none of them started; a limit of 0 turns a clock off."""
    seconds = {
        ClockKind.QUEUE: limits.queue_seconds,
        ClockKind.PRE_RUNNING: limits.pre_running_seconds,
        ClockKind.ACTIVE: limits.active_seconds,
    }
    return tuple(
        Clock(kind, ClockState.NOT_STARTED, limit) if limit else Clock(kind, ClockState.OFF, None)
        for kind, limit in seconds.items()
    )


def start(clocks: Clocks, kind: ClockKind, at: datetime) -> Clocks:
    """`clocks` with `kind` running from `at`, unless it is off or was started before."""
    return tuple(_started(clock, at) if clock.kind is kind else clock for clock in clocks)


def _started(clock: Clock, at: datetime) -> Clock:
    if clock.state is not ClockState.NOT_STARTED or clock.limit_s is None:
        return clock
    due = at + timedelta(seconds=clock.limit_s)
    return replace(clock, state=ClockState.RUNNING, started_at=at, due_at=due)


def stop(clocks: Clocks, kinds: Iterable[ClockKind], at: datetime) -> Clocks:
    """`clocks` with those of `kinds` that run stopped in time."""
    wanted = frozenset(kinds)
    return tuple(
        replace(clock, state=ClockState.STOPPED, ended_at=at, due_at=None)
        if clock.kind in wanted and clock.state in RUNS
        else clock
        for clock in clocks
    )


def expire(clocks: Clocks, kind: ClockKind, at: datetime) -> Clocks:
    """`clocks` with `kind` run out."""
    return tuple(
        replace(clock, state=ClockState.EXPIRED, ended_at=at) if clock.kind is kind else clock for clock in clocks
    )


def grace(clocks: Clocks, kinds: Collection[ClockKind], until: datetime) -> Clocks:
    """`clocks` with those of `kinds` due no earlier than `until`, because we or the cluster were away."""
    return tuple(
        replace(clock, state=ClockState.GRACE, due_at=until)
        if clock.kind in kinds and clock.state in RUNS and clock.due_at and clock.due_at < until
        else clock
        for clock in clocks
    )


def overdue(clocks: Clocks, at: datetime) -> Clock | None:
    """The clock that ran out first by `at`, if any."""
    due = [clock for clock in clocks if clock.state in RUNS and clock.due_at and clock.due_at <= at]
    return min(due, key=lambda clock: clock.due_at or at, default=None)


def next_due(clocks: Clocks) -> datetime | None:
    """When the next of the running clocks runs out."""
    return min((clock.due_at for clock in clocks if clock.state in RUNS and clock.due_at), default=None)
