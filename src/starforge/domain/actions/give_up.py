"""What becomes of a job whose command fails for ever: it ends and says why, and nothing of it stays in the cluster."""

from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import command, guarded
from starforge.domain.changes import Changes, Command, Lease, Retry
from starforge.domain.job import Job, JobOutcome, LogArchive, conclude, end
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason, ReasonCode, keep_since, reason
from starforge.domain.teardown import TeardownState
from starforge.domain.telling import write
from starforge.domain.timeline import CommandFailed, CommandKind, Entry, Severity

_ADVICE = "Tell the people who run StarForge."


def give_up(ports: Ports, lease: Lease, error: str, *, again_s: float) -> None:
    """Park a command, with what follows for its job, in one transaction; a removal is tried again for ever instead."""
    what = lease.command

    def decide(job: Job) -> Changes:
        at = ports.now()
        removal = what.kind is CommandKind.TEARDOWN
        changes = Changes(retry=Retry(at + timedelta(seconds=again_s), error)) if removal else Changes(park=error)
        changes.entries.append(failure(ports, what, error, parked=not removal))
        if job.run == what.run and not job.ended:
            write(changes, job, _after(ports, changes, job, what, error), at, ports.random)
        return changes

    guarded(ports, what.run.job, decide, lease)


def failure(ports: Ports, what: Command, error: str, *, parked: bool = False) -> Entry:
    """The timeline's entry of a command that failed, one for all its tries."""
    at = ports.now()
    after = "was given up" if parked else "is tried again"
    severity = Severity.ERROR if parked else Severity.WARNING
    detail = CommandFailed(what.kind, what.tries, parked)
    return Entry(f"event-{what.id}", what.run, severity, f"{what.kind} {after}: {error}", at, at, detail, what.tries)


def _after(ports: Ports, changes: Changes, job: Job, what: Command, error: str) -> Job:
    at = ports.now()
    if not job.decided:
        changes.commands.append(command(ports, CommandKind.ARCHIVE, job))
        return conclude(job, JobOutcome.FAILED, _internal(what, error, at), at)
    if what.kind is CommandKind.ARCHIVE:
        return _without_archive(ports, changes, job, _internal(what, error, at))
    return _blocked(job, what, error, at) if what.kind is CommandKind.TEARDOWN else job


def _internal(what: Command, error: str, at: datetime) -> Reason:
    message = f"StarForge failed {what.tries} times to {what.kind.lower()} it ({error}); quote {what.id}."
    return reason(ReasonCode.INTERNAL, message, at, advice=_ADVICE)


def _without_archive(ports: Ports, changes: Changes, job: Job, why: Reason) -> Job:
    """The lines stay in the database; no GPU is held because they can't be stored as objects."""
    at, teardown = ports.now(), job.attempt.teardown
    sources = ports.store.log_sources([job.run]).get(job.run, ())
    lines, size = sum(source.lines for source in sources), sum(source.bytes for source in sources)
    kept = LogArchive(len(sources), lines, size, reason=why)
    if teardown and teardown.state is TeardownState.AWAITING_ARCHIVE:
        teardown = replace(teardown, state=TeardownState.DELETING)
        changes.commands.append(command(ports, CommandKind.TEARDOWN, job))
    after = job.with_attempt(replace(job.attempt, archive=kept, logs_archived_at=at, teardown=teardown))
    return end(after, at) if after.attempt.released_at else after


def _blocked(job: Job, what: Command, error: str, at: datetime) -> Job:
    teardown = job.attempt.teardown
    if teardown is None or teardown.state is TeardownState.RELEASED:
        return job
    message = f"What is left in the cluster can't be removed ({error}); it is tried again. Quote {what.id}."
    why = keep_since(reason(ReasonCode.TEARDOWN_BLOCKED, message, at, advice=_ADVICE), teardown.reason)
    return job.with_attempt(replace(job.attempt, teardown=replace(teardown, state=TeardownState.BLOCKED, reason=why)))
