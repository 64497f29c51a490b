"""Announces and brings the end of playgrounds whose time is over; safe for any number of workers at the same time."""

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain import deadlines
from starforge.domain.actions.playgrounds import guarded_playground
from starforge.domain.actions.stop_playground import end_playground
from starforge.domain.changes import Changes
from starforge.domain.deadlines import AWAY, OUTAGE_GRACE, Clock, ClockKind
from starforge.domain.errors import StoreUnavailable
from starforge.domain.playground import SILENT_S, Playground, PlaygroundState, postpone, settled
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, reason

BATCH = 200
PULSE = "playgrounds"
_log = logging.getLogger(__name__)


def expire_playgrounds(ports: Ports) -> int:
    """Look at every playground whose next time has come; returns how many there were."""
    at = ports.now()
    since = ports.store.pulse(PULSE, at=at, pause_s=AWAY.total_seconds())
    due = ports.store.overdue_playgrounds(at=at, limit=BATCH)
    for playground in due:
        try:
            guarded_playground(ports, playground, lambda found: _looked_at(ports, found, since))
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  the clocks of others run as well
            _log.exception("the clocks of %s could not be looked at", playground)
    return len(due)


def _looked_at(ports: Ports, found: Playground, since: datetime) -> Changes | None:
    at = ports.now()
    if found.ended or found.due_at is None or found.due_at > at:
        return None
    changes = Changes()
    after = _as_used(found, at)
    clock = deadlines.overdue(after.clocks, at)
    until = _grace_until(after, clock, at, since) if clock else at
    if clock and until > at:
        graced = replace(after, clocks=deadlines.grace(after.clocks, [clock.kind], until))
        write_playground(changes, found, graced, at, ports.random)
    elif clock:
        expired = replace(after, clocks=deadlines.expire(after.clocks, clock.kind, at))
        to = PlaygroundState.FAILED if clock.kind is ClockKind.PRE_RUNNING else PlaygroundState.STOPPED
        end_playground(ports, changes, expired, _why(found, clock, at), to, before=found)
    else:
        write_playground(changes, found, settled(after, at), at, ports.random)
    return changes


def _as_used(found: Playground, at: datetime) -> Playground:
    """It is not idle while a gateway answers for it, however long that takes; one that is silent answers nothing."""
    usage = found.usage.heard(at)
    after = replace(found, usage=usage)
    last = max((one.at for one in usage.answering), default=None)
    if last is None or not found.answers:
        return after
    return postpone(after, (ClockKind.IDLE,), last + timedelta(seconds=max(found.spec.idle_seconds, SILENT_S)), at)


def _grace_until(found: Playground, clock: Clock, at: datetime, since: datetime) -> datetime:
    """How long it lives on because nobody could start or use it: we or its fleet were away. Its whole life is short."""
    if clock.kind is ClockKind.TIME_TO_LIVE:
        return at
    if clock.kind is ClockKind.PRE_RUNNING and found.stale_since:
        return at + OUTAGE_GRACE
    return max(at, since + OUTAGE_GRACE) if clock.due_at and clock.due_at < since + OUTAGE_GRACE else at


def _why(found: Playground, clock: Clock, at: datetime) -> Reason:
    text = f"{clock.kind} of {clock.limit_s} s was due at {clock.due_at}"
    evidence = (Evidence(EvidenceSource.CLOCK, text, at),)
    if clock.kind is ClockKind.TIME_TO_LIVE:
        return reason(ReasonCode.EXPIRED, "Its time to live is over.", at, evidence=evidence)
    if clock.kind is ClockKind.IDLE:
        message = f"Nobody used it for {found.spec.idle_seconds} s."
        return reason(ReasonCode.IDLE, message, at, evidence=evidence)
    held = found.reason
    last = f" What held it last: {held.message}" if held else ""
    message = f"The server was not ready within {clock.limit_s} s.{last}"
    proof = (*evidence, *(held.evidence if held else ()))
    code = ReasonCode.PRERUNNING_DEADLINE if held and held.code is not ReasonCode.STARTING else ReasonCode.SERVER_FAILED
    return reason(code, message, at, advice=held.advice if held else None, evidence=proof)
