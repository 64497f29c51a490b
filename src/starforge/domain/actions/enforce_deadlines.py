"""Ends what has outlived its clocks; safe for any number of workers at the same time."""

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain import deadlines
from starforge.domain.actions.apply import command, guarded, load
from starforge.domain.actions.cancel import end_now
from starforge.domain.changes import Changes
from starforge.domain.deadlines import AWAY, OUTAGE_GRACE, Clock, ClockKind
from starforge.domain.errors import FleetRefused, FleetUnavailable, StoreUnavailable
from starforge.domain.job import Ending, Job, JobOutcome, JobState, finish
from starforge.domain.names import JobId
from starforge.domain.observation import RunSeen
from starforge.domain.ports import Ports
from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, reason
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind
from starforge.domain.verdict import judge

BATCH = 200
PULSE = "deadlines"
_log = logging.getLogger(__name__)
_CODES = {
    ClockKind.QUEUE: ReasonCode.QUEUE_DEADLINE,
    ClockKind.PRE_RUNNING: ReasonCode.PRERUNNING_DEADLINE,
    ClockKind.ACTIVE: ReasonCode.ACTIVE_DEADLINE,
}
_OUTAGES = frozenset({ReasonCode.API_UNAVAILABLE, ReasonCode.OBJECT_STORE_UNAVAILABLE, ReasonCode.PERMISSION})


def enforce_deadlines(ports: Ports) -> int:
    """Check every job with a time that is over; returns how many there were."""
    at = ports.now()
    since = ports.store.pulse(PULSE, at=at, pause_s=AWAY.total_seconds())
    jobs, ask = ports.store.overdue(at=at, limit=BATCH), True
    for job in jobs:
        try:
            ask = enforce(ports, job, since=since, ask=ask) and ask
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  the clocks of others run as well
            _log.exception("the clocks of %s could not be enforced", job)
    return len(jobs)


def enforce(ports: Ports, job: JobId, *, since: datetime, ask: bool = True) -> bool:
    """End one job if its grace or one of its clocks is over; False if the fleet could not be asked.

    There is a grace first if the fleet can't be asked (or was not, without `ask`), or if we are there only `since` a
    moment ago.
    """
    found = load(ports, job)
    if not _is_over(found, ports.now()):
        return True
    heard = ask and _look(ports, found)
    if found.attempt.ending is None:
        guarded(ports, job, lambda found: _clock_over(ports, found, since, heard=heard))
    elif heard:
        end_now(ports, found.run)
    else:
        guarded(ports, job, lambda found: _ending_later(ports, found))
    return heard


def _is_over(job: Job, at: datetime) -> bool:
    ending = job.attempt.ending
    if job.decided:
        return False
    if ending is None:
        return deadlines.overdue(job.attempt.clocks, at) is not None
    return ending.over_at is not None and ending.over_at <= at


def _look(ports: Ports, job: Job) -> bool:
    """Take in how a run is right now, as the watch may lag behind; False if the fleet can't be asked."""
    if job.attempt.launched_at is None:
        return True
    try:
        seen = ports.fleet.look(job.run)
    except (FleetUnavailable, FleetRefused) as outage:
        _log.warning("a time of %s is over, but %s", job.run, outage)
        return False
    guarded(ports, job.id, lambda found: _judged(ports, found, seen))
    return True


def _judged(ports: Ports, job: Job, seen: RunSeen) -> Changes | None:
    at = ports.now()
    after = judge(job, seen, None, at)
    if after.state is job.state:
        return None
    changes = Changes()
    write(changes, job, after, at, ports.random)
    if after.decided:
        changes.commands.append(command(ports, CommandKind.ARCHIVE, job))
    return changes


def _ending_later(ports: Ports, job: Job) -> Changes | None:
    """What was asked to stop may have done so long ago: it ends when the fleet can tell."""
    at, ending = ports.now(), job.attempt.ending
    if ending is None or not _is_over(job, at):
        return None
    changes = Changes()
    later = replace(ending, grace_until=at + OUTAGE_GRACE)
    write(changes, job, job.with_attempt(replace(job.attempt, ending=later)), at, ports.random)
    return changes


def _clock_over(ports: Ports, job: Job, since: datetime, *, heard: bool) -> Changes | None:
    at = ports.now()
    clock = deadlines.overdue(job.attempt.clocks, at)
    if clock is None or job.attempt.ending or not _is_over(job, at):
        return None
    held = not heard or job.attempt.stale_since or _waits_for_us(job)
    until = at + OUTAGE_GRACE if held else since + OUTAGE_GRACE
    return _graced(ports, job, clock, until) if until > at else _expired(ports, job, clock)


def _waits_for_us(job: Job) -> bool:
    """Whether it could not be launched, as something that we need can't be asked."""
    attempt = job.attempt
    return attempt.launched_at is None and attempt.reason is not None and attempt.reason.code in _OUTAGES


def _graced(ports: Ports, job: Job, clock: Clock, until: datetime) -> Changes:
    changes = Changes()
    clocks = deadlines.grace(job.attempt.clocks, [clock.kind], until)
    write(changes, job, job.with_attempt(replace(job.attempt, clocks=clocks)), ports.now(), ports.random)
    return changes


def _expired(ports: Ports, job: Job, clock: Clock) -> Changes:
    at, changes = ports.now(), Changes()
    expired = job.with_attempt(replace(job.attempt, clocks=deadlines.expire(job.attempt.clocks, clock.kind, at)))
    why = _why(job, clock, at)
    if job.state is JobState.RUNNING:
        until = at + timedelta(seconds=job.spec.cancel_grace_seconds)
        ending = Ending(JobOutcome.FAILED, why, until, unasked=True)
        after = expired.with_attempt(replace(expired.attempt, ending=ending))
        changes.commands.append(command(ports, CommandKind.CANCEL, job))
    else:
        after = finish(expired, JobOutcome.FAILED, why, at)
        changes.commands.append(command(ports, CommandKind.ARCHIVE, job))
    write(changes, job, after, at, ports.random)
    return changes


def _why(job: Job, clock: Clock, at: datetime) -> Reason:
    held = job.attempt.reason
    text = f"{clock.kind} of {clock.limit_s} s was due at {clock.due_at}"
    evidence = (Evidence(EvidenceSource.CLOCK, text, at), *(held.evidence if held else ()))
    if clock.kind is ClockKind.ACTIVE:
        message = f"The command ran longer than its limit of {clock.limit_s} s."
        advice = "Give it a longer active deadline, or make it do less."
        return reason(_CODES[clock.kind], message, at, advice=advice, evidence=evidence)
    last = f" What held it last: {held.message}" if held else ""
    message = f"It did not start within {clock.limit_s} s.{last}"
    return reason(_CODES[clock.kind], message[:2000], at, advice=held.advice if held else None, evidence=evidence)
