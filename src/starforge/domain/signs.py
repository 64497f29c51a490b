"""Checks that nobody has to ask for, as what the database holds shows them: ticks, workers and observers."""

from datetime import datetime, timedelta

from starforge.domain.health import (
    CommandQueue,
    Finding,
    HealthCheckKind,
    HealthReport,
    HealthStatus,
    ObserverLease,
)

CHECK_EVERY_S = 10.0
STALE = timedelta(seconds=45)
"""After so long without a new one, what a check found says nothing of now."""
WAITS = timedelta(seconds=60)
"""A command that is due for so long, and that nobody works on, says that nobody takes work."""
SILENT = timedelta(seconds=20)
BEHIND_S = 10.0
_START = "start `starforge worker --beat`, or a `starforge worker` if none runs"


def beat(report: HealthReport | None, at: datetime, *, redis: bool = True) -> Finding:
    """Whether ticks run, by the newest report that one of them wrote; `redis` says whether they could."""
    kind, why = HealthCheckKind.BEAT, _START if redis else "it comes by Redis, which can't be asked"
    if report is not None and at - report.checked_at <= STALE:
        return Finding(kind)
    if report is None:
        return Finding(kind, HealthStatus.UNKNOWN, f"The tick has not run yet: {why}.")
    message = f"The tick that re-sends and enforces has not run for over {STALE.seconds} seconds: {why}."
    return Finding(kind, HealthStatus.DOWN, message, since=report.checked_at)


def workers(report: HealthReport | None, commands: CommandQueue, at: datetime) -> Finding:
    """Whether workers take work, by the newest report, which one of them wrote, and by what waits for them."""
    kind, waits = HealthCheckKind.WORKERS, commands.waiting_since
    is_late = waits is not None and at - waits > WAITS
    works = report is not None and at - report.checked_at <= STALE
    if is_late and works:
        message = "Workers are behind: commands wait for over a minute. Start more of them with `starforge worker`."
        return Finding(kind, HealthStatus.DEGRADED, message, since=waits)
    if is_late:
        message = "Nobody takes work, and commands wait for over a minute: start `starforge worker`."
        return Finding(kind, HealthStatus.DOWN, message, since=waits)
    if works:
        return Finding(kind)
    return Finding(kind, HealthStatus.UNKNOWN, "No tick came and no command waits, so nothing shows whether one runs.")


def observer(fleet: str, lease: ObserverLease | None, at: datetime) -> Finding:
    """Whether somebody observes a fleet, and how well that hears it."""
    kind = HealthCheckKind.OBSERVER
    if lease is None or lease.until < at:
        message = f"Nobody observes fleet {fleet}: start `starforge watch`. Its jobs go on, unseen."
        return Finding(kind, HealthStatus.DOWN, message, since=lease.until if lease else None)
    heard = lease.heard
    if heard.problem:
        return Finding(kind, HealthStatus.DEGRADED, heard.problem, since=heard.at)
    if heard.at is None or at - heard.at > SILENT:
        message = f"The observer of fleet {fleet} has heard nothing yet, or for over {SILENT.seconds} seconds."
        return Finding(kind, HealthStatus.DEGRADED, message, since=heard.at)
    if (heard.lag_s or 0.0) > BEHIND_S:
        message = f"The observer of fleet {fleet} is over {BEHIND_S:g} seconds behind: the database or it is too slow."
        return Finding(kind, HealthStatus.DEGRADED, message)
    return Finding(kind)
