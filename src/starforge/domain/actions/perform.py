"""Does one command under a lease: what fails is tried again later, what fails for ever is parked and told."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from starforge.domain.actions.apply import apply, command, guarded
from starforge.domain.actions.archive import archive
from starforge.domain.actions.cancel import stop
from starforge.domain.actions.launch import launch
from starforge.domain.actions.package import package
from starforge.domain.actions.teardown import teardown
from starforge.domain.changes import Changes, Command, Lease, Retry
from starforge.domain.errors import FleetUnavailable, ObjectStoreUnavailable, Outside, StaleRevision, StoreUnavailable
from starforge.domain.job import Job, JobOutcome, JobState, finish
from starforge.domain.names import CommandId
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason, ReasonCode, keep_since, reason
from starforge.domain.telling import write
from starforge.domain.timeline import CommandFailed, CommandKind, Entry, Severity

LEASE_S = 150.0
PARK_AFTER = 8
_log = logging.getLogger(__name__)

ACTIONS: Mapping[CommandKind, Callable[[Ports, Lease], None]] = {
    CommandKind.PACKAGE: package,
    CommandKind.LAUNCH: launch,
    CommandKind.CANCEL: stop,
    CommandKind.ARCHIVE: archive,
    CommandKind.TEARDOWN: teardown,
}


def perform(ports: Ports, which: CommandId) -> bool:
    """Do the command if it is due and nobody else does it; returns whether it was ours to do."""
    lease = ports.store.take(which, token=ports.random(), at=ports.now(), lease_s=LEASE_S)
    if lease is None:
        return False
    try:
        ACTIONS[lease.command.kind](ports, lease)
    except StaleRevision:
        _again(ports, lease, Retry(ports.now() + timedelta(milliseconds=200)))
    except StoreUnavailable:
        raise  # the lease runs out and the tick sends the command again
    except Outside as outside:
        _outside(ports, lease, outside)
    except Exception as defect:  # noqa: BLE001  a defect must not lose the command
        _log.exception("command %s of %s failed", lease.command.kind, lease.command.run)
        _failed(ports, lease, f"{type(defect).__name__} in {lease.command.kind}")
    return True


def _again(ports: Ports, lease: Lease, retry: Retry, entry: Entry | None = None) -> None:
    try:
        apply(ports, Changes(retry=retry, entries=[entry] if entry else []), lease)
    except StaleRevision:
        _log.info("command %s of %s was taken over by another worker", lease.command.kind, lease.command.run)


def backoff_s(tries: int) -> float:
    """Seconds until the next try: 1, 2, 4, … up to 30."""
    return float(min(30, 2 ** max(0, tries - 1)))


def _outside(ports: Ports, lease: Lease, outside: Outside) -> None:
    """Something outside can't be asked: the job waits, says so, and goes on when it is back, however long it takes."""
    _log.warning("command %s of %s waits: %s", lease.command.kind, lease.command.run, outside)
    guarded(ports, lease.command.run.job, lambda job: _explained(ports, job, outside))
    retry = Retry(ports.now() + timedelta(seconds=backoff_s(lease.command.tries)), outside.message)
    _again(ports, lease, retry, _entry(ports, lease.command, outside.message) if lease.command.tries == 1 else None)


def _explained(ports: Ports, job: Job, outside: Outside) -> Changes | None:
    if job.decided or job.state is JobState.RUNNING:
        return None
    at = ports.now()
    why = keep_since(_outage(outside, ports), job.attempt.reason)
    changes = Changes()
    write(changes, job, job.with_attempt(replace(job.attempt, reason=why)), at, ports.random)
    return None if changes.empty else changes


def _outage(outside: Outside, ports: Ports) -> Reason:
    code = ReasonCode.INTERNAL
    if isinstance(outside, FleetUnavailable):
        code = ReasonCode.API_UNAVAILABLE
    elif isinstance(outside, ObjectStoreUnavailable):
        code = ReasonCode.OBJECT_STORE_UNAVAILABLE
    return reason(code, outside.message, ports.now(), advice="It goes on by itself as soon as it can be reached.")


def _entry(ports: Ports, what: Command, error: str, *, parked: bool = False) -> Entry:
    at = ports.now()
    after = "was given up" if parked else "is tried again"
    severity = Severity.ERROR if parked else Severity.WARNING
    detail = CommandFailed(what.kind, what.tries, parked)
    return Entry(f"event-{what.id}", what.run, severity, f"{what.kind} {after}: {error}", at, at, detail, what.tries)


def _failed(ports: Ports, lease: Lease, error: str) -> None:
    """A defect of ours: try again some times, then park the command and end its job with a reason."""
    what = lease.command
    if what.tries < PARK_AFTER:
        retry = Retry(ports.now() + timedelta(seconds=backoff_s(what.tries)), error)
        return _again(ports, lease, retry, _entry(ports, what, error))
    apply(ports, Changes(park=error, entries=[_entry(ports, what, error, parked=True)]), lease)
    guarded(ports, what.run.job, lambda job: _given_up(ports, job, what, error))


def _given_up(ports: Ports, job: Job, what: Command, error: str) -> Changes | None:
    if job.decided or job.run != what.run:
        return None
    at = ports.now()
    message = f"StarForge failed {what.tries} times to {what.kind.lower()} it ({error}); quote {what.id}."
    why = reason(ReasonCode.INTERNAL, message, at, advice="Tell the people who run StarForge.")
    changes = Changes()
    write(changes, job, finish(job, JobOutcome.FAILED, why, at), at, ports.random)
    changes.commands.append(command(ports, CommandKind.ARCHIVE, job))
    return changes
