"""cancelJob: whoever is first in the database wins; a command that runs gets a grace, anything else goes at once."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from starforge.domain.actions.apply import apply, command, guarded, load
from starforge.domain.changes import Changes, Lease
from starforge.domain.errors import FleetRefused, Problem, WrongState
from starforge.domain.job import PLATFORM, Actor, Cancellation, Ending, Job, JobOutcome, JobState, finish
from starforge.domain.names import JobId, RunKey
from starforge.domain.ports import Ports, StopAnswer
from starforge.domain.reason import Reason, ReasonCode, reason
from starforge.domain.spec_rules import storable
from starforge.domain.telling import write
from starforge.domain.timeline import Action, ActionRequested, CommandKind, Entry, Severity

NOBODY = "Nobody could be asked to stop the command, so it is removed at once."


class CancelStatus(StrEnum):
    REQUESTED = "REQUESTED"
    ALREADY_REQUESTED = "ALREADY_REQUESTED"
    ALREADY_ENDED = "ALREADY_ENDED"
    WOULD_CANCEL = "WOULD_CANCEL"
    REFUSED = "REFUSED"


@dataclass(frozen=True)
class Wish:
    """Who wants an attempt to end and why; `grace_s` and `attempt` are None for the spec's own and for any."""

    by: Actor
    note: str | None = None
    grace_s: int | None = None
    attempt: int | None = None


def cancel(ports: Ports, job: JobId, wish: Wish) -> tuple[CancelStatus, Job]:
    """Ask for a job to end; NotFound if there is none, WrongState if another attempt is meant. Safe to repeat."""
    check(wish)
    answers: list[CancelStatus] = []

    def decide(found: Job) -> Changes | None:
        _demand_attempt(found, wish)
        status = status_of(found)
        answers.append(status)
        if status is not CancelStatus.REQUESTED:
            return None
        changes = Changes()
        request(ports, changes, found, wish)
        return changes

    after = guarded(ports, job, decide)
    return answers[-1], after


def check(wish: Wish) -> None:
    """UserMistake with every problem of its grace and note."""
    problems = note_problems(wish.note)
    if wish.grace_s is not None and not 0 <= wish.grace_s <= 3600:
        problems.append(Problem("OUT_OF_RANGE", ("graceSeconds",), "graceSeconds must be 0 to 3,600."))
    if problems:
        raise WrongState(problems)


def note_problems(note: str | None) -> list[Problem]:
    """What is wrong with a note for the timeline."""
    problems = []
    if note is not None and len(note) > 500:
        problems.append(Problem("TOO_LARGE", ("note",), "A note has at most 500 characters."))
    if not storable(note or ""):
        problems.append(Problem("INVALID", ("note",), "A note can't hold a NUL or half a character."))
    return problems


def _demand_attempt(job: Job, wish: Wish) -> None:
    if wish.attempt not in (None, job.attempt.number):
        message = f"Attempt {wish.attempt} is not the current one: that is {job.attempt.number}."
        raise WrongState([Problem("WRONG_STATE", ("attempt",), message)])


def status_of(job: Job) -> CancelStatus:
    """What becomes of a wish to cancel a job that is like this."""
    if job.decided or job.ended:
        return CancelStatus.ALREADY_ENDED
    return CancelStatus.ALREADY_REQUESTED if job.attempt.cancellation else CancelStatus.REQUESTED


def request(ports: Ports, changes: Changes, job: Job, wish: Wish) -> None:
    """Add to `changes` that somebody wants the job to end."""
    at = ports.now()
    said = f": {wish.note}" if wish.note else "."
    detail = ActionRequested(Action.CANCEL, wish.by, wish.note)
    message = f"{wish.by.name} asked for it to end{said}"
    changes.entries.append(Entry(f"event-{ports.random()}", job.run, Severity.INFO, message, at, at, detail))
    runs = job.state is JobState.RUNNING
    write(changes, job, _ending(job, wish, at) if runs else _at_once(job, wish, at), at, ports.random)
    changes.commands.append(command(ports, CommandKind.CANCEL if runs else CommandKind.ARCHIVE, job))


def _why(wish: Wish, at: datetime) -> Reason:
    said = f": {wish.note}" if wish.note else "."
    return reason(ReasonCode.CANCELED, f"{wish.by.name} canceled it{said}", at)


def _at_once(job: Job, wish: Wish, at: datetime) -> Job:
    job = job.with_attempt(replace(job.attempt, cancellation=Cancellation(at, wish.by, wish.note)))
    return finish(job, JobOutcome.CANCELED, _why(wish, at), at)


def _ending(job: Job, wish: Wish, at: datetime) -> Job:
    grace = job.spec.cancel_grace_seconds if wish.grace_s is None else wish.grace_s
    until = at + timedelta(seconds=grace)
    cancellation = Cancellation(at, wish.by, wish.note, until)
    ending = job.attempt.ending or Ending(JobOutcome.CANCELED, _why(wish, at), until, unasked=True)
    return job.with_attempt(replace(job.attempt, cancellation=cancellation, ending=ending))


def stop(ports: Ports, lease: Lease) -> None:
    """CANCEL: ask the command to end; if nobody can be asked, the attempt ends now. The tick ends the grace.

    While the fleet can't be asked, the command runs on: its grace begins when it can.
    """
    job = load(ports, lease.command.run.job)
    ending = job.attempt.ending
    if ending is None or job.decided or job.run != lease.command.run:
        return apply(ports, Changes(done=True), lease)
    said = _ask(ports, job.run, ending)
    if said:
        end_now(ports, job.run, said)
        return apply(ports, Changes(done=True), lease)
    guarded(ports, job.id, lambda found: _asked(ports, found, job.run), lease)


def _ask(ports: Ports, run: RunKey, ending: Ending) -> str | None:
    """Ask for the stop; why the attempt has to end without, if nobody could pass that on."""
    until = ending.asked(ports.now()).grace_until if ending.unasked else ending.grace_until
    try:
        answer = ports.fleet.stop(run, grace_s=max(0, round((until - ports.now()).total_seconds())))
    except FleetRefused as refused:
        return f"The command could not be asked to stop, so it is removed at once. {refused.message}"
    return None if answer is StopAnswer.ASKED else NOBODY


def _asked(ports: Ports, job: Job, run: RunKey) -> Changes:
    """CANCEL is done; the grace counts from now on, if it did not before."""
    changes, ending = Changes(done=True), job.attempt.ending
    if ending is None or not ending.unasked or job.run != run:
        return changes
    at = ports.now()
    ending = ending.asked(at)
    cancellation = job.attempt.cancellation
    if cancellation and cancellation.grace_until:
        cancellation = replace(cancellation, grace_until=ending.grace_until)
    after = job.with_attempt(replace(job.attempt, ending=ending, cancellation=cancellation))
    write(changes, job, after, at, ports.random)
    return changes


def end_now(ports: Ports, run: RunKey, said: str | None = None) -> None:
    """End an attempt that has an ending, whether its command has stopped or not; `said` goes into its timeline."""

    def decide(found: Job) -> Changes | None:
        ending = found.attempt.ending
        if ending is None or found.decided or found.run != run:
            return None
        at = ports.now()
        changes = Changes()
        if said:
            detail = ActionRequested(Action.CANCEL, PLATFORM, said)
            changes.entries.append(Entry(f"event-{ports.random()}", found.run, Severity.WARNING, said, at, at, detail))
        write(changes, found, finish(found, ending.outcome, ending.reason, at), at, ports.random)
        changes.commands.append(command(ports, CommandKind.ARCHIVE, found))
        return changes

    guarded(ports, run.job, decide)
