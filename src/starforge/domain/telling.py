"""What a change of a job is told as: the aspects that changed, and entries of its timeline, from before and after."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from starforge.domain.changes import Aspect, Changes
from starforge.domain.deadlines import Clock, ClockKind, ClockState
from starforge.domain.job import Attempt, Job, JobOutcome, JobState, StateSpan
from starforge.domain.reason import ReasonCode, same_story
from starforge.domain.teardown import Teardown, TeardownState
from starforge.domain.timeline import (
    ClockChanged,
    Detail,
    Entry,
    ReasonChanged,
    Severity,
    StateChanged,
    TeardownChanged,
)

NewId = Callable[[], str]

_FIELDS: dict[Aspect, tuple[str, ...]] = {
    Aspect.STATE: ("spans", "outcome", "exit_code", "cancellation", "number", "logs_archived_at", "released_at"),
    Aspect.REASON: ("reason",),
    Aspect.PROGRESS: ("progress",),
    Aspect.CLOCKS: ("clocks",),
    Aspect.LOGS: ("archive",),
    Aspect.OBSERVATION: ("stale_since", "stale_problem", "stale_code"),
    Aspect.TEARDOWN: ("teardown",),
    Aspect.QUEUE: ("queue",),
}
_CLOCKS = {
    ClockKind.QUEUE: "queue clock",
    ClockKind.PRE_RUNNING: "pre-running clock",
    ClockKind.ACTIVE: "active clock",
}


def aspects(before: Job | None, after: Job) -> frozenset[Aspect]:
    """What changed between two versions of a job; everything about a new one is its state."""
    if before is None:
        return frozenset({Aspect.STATE, Aspect.CLOCKS})
    old, new = before.attempt, after.attempt
    return frozenset(
        aspect for aspect, names in _FIELDS.items() if any(getattr(old, name) != getattr(new, name) for name in names)
    )


def write(changes: Changes, before: Job | None, after: Job, at: datetime, new_id: NewId, *also: Aspect) -> None:
    """Add to `changes` the new version of a job and everything that its timeline tells of it."""
    changed = aspects(before, after) | set(also)
    if before is not None and not changed and before == after:
        return
    changes.job(replace(after, updated_at=max(at, after.updated_at)) if changed else after, *changed)
    changes.extend(entries(before, after, at, new_id))


def entries(before: Job | None, after: Job, at: datetime, new_id: NewId) -> Iterator[Entry]:
    """The timeline's entries for a change of a job, in the order in which things happened."""
    old = before.attempt if before and before.attempt.number == after.attempt.number else None
    for detail, severity, message in _details(old, after):
        yield Entry(f"event-{new_id()}", after.run, severity, message, at, at, detail, fleet=after.spec.fleet)


def _details(old: Attempt | None, job: Job) -> Iterator[tuple[Detail, Severity, str]]:
    yield from _states(old, job)
    yield from _reason(old, job)
    yield from _clocks(old, job.attempt)
    yield from _teardown(old.teardown if old else None, job.attempt.teardown)


def _states(old: Attempt | None, job: Job) -> Iterator[tuple[Detail, Severity, str]]:
    spans = job.attempt.spans
    start = len(old.spans) if old else 0
    for index in range(start, len(spans)):
        state, before = spans[index].state, spans[index - 1].state if index else None
        why = job.attempt.reason if state in _EXPLAINED else None
        yield StateChanged(state, before, why), _severity(state, job.attempt), _sentence(spans[index], job.attempt)


_EXPLAINED = frozenset({JobState.FINISHING, JobState.FAILED, JobState.CANCELED})
_SENTENCES = {
    JobState.SUBMITTED: "Submitted.",
    JobState.PACKAGING: "The Capsule is being built.",
    JobState.LAUNCHING: "The Capsule is stored; the run is being created.",
    JobState.PENDING: "The run exists and waits for its machines.",
    JobState.RUNNING: "The command runs.",
    JobState.SUCCEEDED: "Succeeded: logs are kept and nothing is left in the cluster.",
    JobState.FAILED: "Failed: logs are kept and nothing is left in the cluster.",
    JobState.CANCELED: "Canceled: logs are kept and nothing is left in the cluster.",
}


def _sentence(span: StateSpan, attempt: Attempt) -> str:
    if span.state is JobState.FINISHING:
        why = f" {attempt.reason.message}" if attempt.reason else ""
        return f"The outcome is {attempt.outcome}.{why}"
    return _SENTENCES[span.state]


def _severity(state: JobState, attempt: Attempt) -> Severity:
    failed = attempt.outcome is JobOutcome.FAILED and state in _EXPLAINED
    return Severity.ERROR if failed else Severity.INFO


def _reason(old: Attempt | None, job: Job) -> Iterator[tuple[Detail, Severity, str]]:
    new = job.attempt
    if old is None or new.outcome is not None or same_story(old.reason, new.reason):
        return
    if old.reason and new.reason and old.reason.code is new.reason.code and new.reason.code in _SHIFTING:
        return  # each machine that gets ready, or that others take, changes the sentence: state to show, no event
    yield ReasonChanged(new.reason), Severity.INFO, new.reason.message if new.reason else _freed(old, new)


_SHIFTING = frozenset({ReasonCode.STARTING, ReasonCode.QUEUED})


def _freed(old: Attempt, new: Attempt) -> str:
    """What is said when nothing holds it any more."""
    queued = old.reason is not None and old.reason.code is ReasonCode.QUEUED
    return f"It leaves the queue. {new.queue.decision}" if queued and new.queue else "Nothing holds it any more."


def _clocks(old: Attempt | None, new: Attempt) -> Iterator[tuple[Detail, Severity, str]]:
    known = {clock.kind: clock for clock in (old.clocks if old else ())}
    for clock in new.clocks:
        before = known.get(clock.kind)
        if clock.state in (ClockState.OFF, ClockState.NOT_STARTED) or (before and before.state is clock.state):
            continue
        severity = Severity.ERROR if clock.state is ClockState.EXPIRED else Severity.INFO
        yield ClockChanged(clock), severity, _clock_sentence(clock)


def _clock_sentence(clock: Clock) -> str:
    what = f"The {_CLOCKS[clock.kind]} of {clock.limit_s} s"
    return {
        ClockState.RUNNING: f"{what} started.",
        ClockState.GRACE: f"{what} got a grace, as the fleet could not be asked or nobody was there to look.",
        ClockState.STOPPED: f"{what} stopped in time.",
        ClockState.EXPIRED: f"{what} ran out.",
    }.get(clock.state, what)


def _teardown(old: Teardown | None, new: Teardown | None) -> Iterator[tuple[Detail, Severity, str]]:
    if new is None or (old and old.state is new.state):
        return
    sentence = {
        TeardownState.AWAITING_ARCHIVE: "Its cluster is removed as soon as its logs are kept.",
        TeardownState.DELETING: "Its logs are kept; its cluster is being removed.",
        TeardownState.BLOCKED: new.reason.message if new.reason else "Its cluster refuses to go.",
        TeardownState.RELEASED: "Nothing of it is left in the cluster.",
    }[new.state]
    yield TeardownChanged(new), Severity.WARNING if new.state is TeardownState.BLOCKED else Severity.INFO, sentence
