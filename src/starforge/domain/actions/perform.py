"""Does one command under a lease: what fails is tried again later, what fails for ever is parked and told."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import timedelta

from starforge.domain.actions.apply import apply, guarded
from starforge.domain.actions.archive import archive
from starforge.domain.actions.cancel import stop
from starforge.domain.actions.give_up import failure, give_up
from starforge.domain.actions.launch import launch
from starforge.domain.actions.package import package
from starforge.domain.actions.teardown import teardown
from starforge.domain.changes import Changes, Command, Lease, Retry
from starforge.domain.errors import FleetUnavailable, ObjectStoreUnavailable, Outside, StaleRevision, StoreUnavailable
from starforge.domain.job import Attempt, Job, JobState
from starforge.domain.names import CommandId
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason, ReasonCode, keep_since, reason
from starforge.domain.teardown import looked
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind, Entry

LEASE_S = 30.0
RENEW_S = 8.0
"""How often whoever does a command renews its lease, so that one whose worker was killed is taken up soon."""
PARK_AFTER = 8
_log = logging.getLogger(__name__)

ACTIONS: Mapping[CommandKind, Callable[[Ports, Lease], None]] = {
    CommandKind.PACKAGE: package,
    CommandKind.LAUNCH: launch,
    CommandKind.CANCEL: stop,
    CommandKind.ARCHIVE: archive,
    CommandKind.TEARDOWN: teardown,
}


_HELD_IN = {
    CommandKind.PACKAGE: (JobState.SUBMITTED, JobState.PACKAGING),
    CommandKind.LAUNCH: (JobState.LAUNCHING,),
}


Holding = Callable[[Ports, Lease], AbstractContextManager[object]]


def perform(ports: Ports, which: CommandId, holding: Holding = lambda ports, lease: nullcontext()) -> bool:
    """Do the command if it is due and nobody else does it; returns whether it was ours to do.

    `holding` renews the lease meanwhile; without it, what takes longer than LEASE_S is done again by another worker.
    """
    lease = ports.store.take(which, token=ports.random(), at=ports.now(), lease_s=LEASE_S)
    if lease is None:
        return False
    with holding(ports, lease):
        _perform(replace(ports, lease=lease), lease)
    return True


def _perform(ports: Ports, lease: Lease) -> None:
    if _kills_its_workers(lease.command):
        return _give_up(ports, lease, f"its worker ended {PARK_AFTER} times before it could say what became of it")
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


def _kills_its_workers(what: Command) -> bool:
    """Tries are counted when they begin. A removal goes on for ever, however it fails."""
    return what.kind is not CommandKind.TEARDOWN and what.tries - what.outages > PARK_AFTER


def _failed(ports: Ports, lease: Lease, error: str) -> None:
    """A defect of ours: try again some times, then give up."""
    tries = lease.command.tries - lease.command.outages
    if tries < PARK_AFTER:
        retry = Retry(ports.now() + timedelta(seconds=backoff_s(tries)), error)
        return _again(ports, lease, retry, failure(ports, lease.command, error))
    _give_up(ports, lease, error)


def _give_up(ports: Ports, lease: Lease, error: str) -> None:
    what = lease.command
    try:
        give_up(ports, lease, error, again_s=backoff_s(what.tries - what.outages))
    except StaleRevision:
        _taken_over(lease)
    except StoreUnavailable:
        raise
    except Exception:  # noqa: BLE001  what can't even be given up would be tried for ever
        _log.exception("command %s of %s could not be given up with its job; it is parked alone", what.kind, what.run)
        _park(ports, lease, error)


def _park(ports: Ports, lease: Lease, error: str) -> None:
    """Nothing is known of its job: its row can't be read. A person has to look."""
    entry = failure(ports, lease.command, error, parked=True)
    try:
        apply(ports, Changes(park=error, entries=[entry]), lease)
    except StaleRevision:
        _taken_over(lease)


def _again(ports: Ports, lease: Lease, retry: Retry, entry: Entry | None = None) -> None:
    try:
        apply(ports, Changes(retry=retry, entries=[entry] if entry else []), lease)
    except StaleRevision:
        _taken_over(lease)


def _taken_over(lease: Lease) -> None:
    _log.info("command %s of %s was taken over by another worker", lease.command.kind, lease.command.run)


def backoff_s(tries: int) -> float:
    """Seconds until the next try: 1, 2, 4, … up to 30."""
    return float(min(30, 2 ** max(0, tries - 1)))


def _outside(ports: Ports, lease: Lease, outside: Outside) -> None:
    """Something outside can't be asked: the job waits, says so, and goes on when it is back, however long it takes."""
    _log.warning("command %s of %s waits: %s", lease.command.kind, lease.command.run, outside)
    what = lease.command
    try:
        guarded(ports, what.run.job, lambda job: _explained(ports, job, what, outside))
    except StaleRevision:
        return _taken_over(lease)
    retry = Retry(ports.now() + timedelta(seconds=backoff_s(what.tries)), outside.message, outage=True)
    _again(ports, lease, retry, failure(ports, what, outside.message) if what.tries == 1 else None)


def _explained(ports: Ports, job: Job, what: Command, outside: Outside) -> Changes | None:
    if job.run != what.run:
        return None
    after, changes = _held(ports, job, what, outside), Changes()
    if after is not None:
        write(changes, job, job.with_attempt(after), ports.now(), ports.random)
    return None if changes.empty else changes


def _held(ports: Ports, job: Job, what: Command, outside: Outside) -> Attempt | None:
    """The attempt with what holds it, which for a removal may be over at the next try already."""
    why, attempt = _outage(outside, ports), job.attempt
    if job.state in _HELD_IN.get(what.kind, ()):
        return replace(attempt, reason=keep_since(why, attempt.reason))
    left = attempt.teardown
    if what.kind is CommandKind.TEARDOWN and what.outages and left and not left.released_at:
        removal = looked(left, left.remaining, ports.now(), refused=why)
        return replace(attempt, teardown=replace(removal, deleting_since=left.deleting_since))
    return None


def _outage(outside: Outside, ports: Ports) -> Reason:
    code = ReasonCode.INTERNAL
    if isinstance(outside, FleetUnavailable):
        if outside.reason:
            return outside.reason
        code = ReasonCode.API_UNAVAILABLE
    elif isinstance(outside, ObjectStoreUnavailable):
        code = ReasonCode.OBJECT_STORE_UNAVAILABLE
    return reason(code, outside.message, ports.now(), advice="It goes on by itself as soon as it can be reached.")
