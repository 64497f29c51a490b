"""retryJob: the next attempt of a job that has ended, with the same spec and the same Capsule."""

import hashlib
from dataclasses import dataclass

from starforge.domain.actions.apply import GUARD_TRIES, apply, command, load
from starforge.domain.actions.cancel import note_problems
from starforge.domain.actions.submit import SubmitStatus, key_problems, other_body
from starforge.domain.changes import Aspect, Changes, IdempotencyRecord
from starforge.domain.errors import Problem, StaleRevision, WrongState
from starforge.domain.job import Actor, Attempt, Job, new_attempt
from starforge.domain.names import JobId
from starforge.domain.ports import Ports
from starforge.domain.queue import Queueing
from starforge.domain.telling import write
from starforge.domain.timeline import Action, ActionRequested, CommandKind, Entry, Severity

MUTATION = "retryJob"
ATTEMPTS_MAX = 100


@dataclass(frozen=True)
class Again:
    """Who wants another attempt of a job and why; the same key gives the same attempt."""

    by: Actor
    idempotency_key: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Retried:
    status: SubmitStatus
    job: Job
    attempt: Attempt


def can_be_retried(job: Job) -> bool:
    """Whether it has ended, with everything of its attempt kept and gone, and may have one more attempt."""
    return job.ended and job.attempt.number < ATTEMPTS_MAX


def retry(ports: Ports, job: JobId, again: Again) -> Retried:
    """Start the next attempt; NotFound, Conflict for a key of another job, WrongState if it has not ended."""
    problems = [*key_problems(again.idempotency_key), *note_problems(again.note)]
    if problems:
        raise WrongState(problems)
    for _ in range(GUARD_TRIES):
        found = load(ports, job)
        replayed = _replayed(ports, found, again)
        if replayed:
            return replayed
        try:
            apply(ports, _next(ports, found, again))
        except StaleRevision:
            continue
        after = load(ports, job)
        return Retried(SubmitStatus.CREATED, after, _attempt(ports, after, found.attempt.number + 1))
    raise StaleRevision(f"{job} was changed by others {GUARD_TRIES} times while it was being retried; try again.")


def _replayed(ports: Ports, job: Job, again: Again) -> Retried | None:
    key = again.idempotency_key
    record = ports.store.idempotency(job.spec.project, MUTATION, key) if key else None
    if record is None:
        return None
    if record.job != job.id:
        raise other_body(record)
    return Retried(SubmitStatus.REPLAYED, job, _attempt(ports, job, record.attempt))


def _attempt(ports: Ports, job: Job, number: int) -> Attempt:
    """It is the current one unless the job was retried again since."""
    if job.attempt.number == number:
        return job.attempt
    return next(one for one in ports.store.attempts([job.id])[job.id] if one.number == number)


def _next(ports: Ports, job: Job, again: Again) -> Changes:
    if not can_be_retried(job):
        raise WrongState([Problem("WRONG_STATE", ("id",), _why_not(job))])
    at, changes = ports.now(), Changes()
    queued = ports.queueing is not Queueing.OFF
    after = job.with_attempt(new_attempt(job.spec, job.attempt.number + 1, again.by, at, queued=queued))
    said = f": {again.note}" if again.note else "."
    message = f"{again.by.name} asked for attempt {after.attempt.number}{said}"
    detail = ActionRequested(Action.RETRY, again.by, again.note)
    changes.entries.append(Entry(f"event-{ports.random()}", after.run, Severity.INFO, message, at, at, detail))
    write(changes, job, after, at, ports.random, Aspect.STATE, Aspect.CLOCKS, Aspect.PODS, Aspect.LOGS)
    if not after.queues:
        changes.commands.append(command(ports, CommandKind.PACKAGE, after))
    if again.idempotency_key:
        changes.idempotency.append(_record(job, after, again))
    return changes


def _why_not(job: Job) -> str:
    if not job.ended:
        return f"It is {job.state}: only a job that has ended can be retried. Cancel it, or wait for its end."
    return f"It has had {ATTEMPTS_MAX} attempts, which is the most; submit it as a new job."


def _record(before: Job, after: Job, again: Again) -> IdempotencyRecord:
    body = hashlib.sha256(before.id.encode()).hexdigest()
    key, project = again.idempotency_key or "", before.spec.project
    return IdempotencyRecord(project, MUTATION, key, body, before.id, after.attempt.number, after.attempt.created_at)
