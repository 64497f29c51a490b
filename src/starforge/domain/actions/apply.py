"""The one way to write: commit, then tell gateways and workers. What fails after the commit is repaired by the tick."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from starforge.domain.changes import Changes, Lease, NewCommand
from starforge.domain.errors import NotFound, StaleRevision, StoreUnavailable
from starforge.domain.job import Job
from starforge.domain.names import CommandId, JobId
from starforge.domain.ports import Ports
from starforge.domain.timeline import CommandKind

GUARD_TRIES = 20
NUDGE_MAX = 100


def apply(ports: Ports, changes: Changes, lease: Lease | None = None) -> None:
    """Commit `changes`, publish their feed rows and nudge for the commands that are due.

    Whatever a command commits is under its lease; with `lease`, the changes say what becomes of it.
    """
    at = ports.now()
    rows = ports.store.commit(changes, at=at, lease=lease or ports.lease)
    ports.publish(rows)
    _nudge(ports, changes, lease)


def _nudge(ports: Ports, changes: Changes, lease: Lease | None) -> None:
    """Tell workers what is due by now: what was asked for, or an open command that was brought forward by it.

    A finished command may have kept others of its job waiting.
    """
    jobs = {command.run.job for command in changes.commands} | ({lease.command.run.job} if lease else set())
    if not jobs:
        return
    with suppress(StoreUnavailable):  # it is committed: to raise now would make the caller do it again
        ports.nudge(ports.store.due(at=ports.now(), limit=NUDGE_MAX, jobs=sorted(jobs)))


def command(ports: Ports, kind: CommandKind, job: Job, *, in_s: float = 0) -> NewCommand:
    """A new command for the current attempt of `job`."""
    due = ports.now() + timedelta(seconds=in_s)
    return NewCommand(CommandId(f"command-{ports.random()}"), kind, job.run, due)


def load(ports: Ports, job: JobId) -> Job:
    """The job; NotFound if there is none."""
    found = ports.store.job(job)
    if found is None:
        raise NotFound(f"There is no job {job}.")
    return found


def guarded(ports: Ports, job: JobId, decide: Callable[[Job], Changes | None], lease: Lease | None = None) -> Job:
    """Load, decide and apply, again whenever somebody else changed the job first; returns the job as it is then.

    StaleRevision if the lease is over.
    """
    found = load(ports, job)
    for _ in range(GUARD_TRIES):
        changes = decide(found)
        if changes is None:
            return found
        try:
            apply(ports, changes, lease)
        except StaleRevision:
            before, found = found, load(ports, job)
            if (lease or ports.lease) and found.revision == before.revision:
                raise
            continue
        return load(ports, job)
    raise StaleRevision(f"{job} was changed by others {GUARD_TRIES} times while it was being changed; try again.")
