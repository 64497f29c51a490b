"""A job and its attempt: the states, every legal move between them, and what a move does to clocks and times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from starforge.domain import deadlines
from starforge.domain.deadlines import Clock, ClockKind
from starforge.domain.errors import IllegalMove
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.observation import RayJobView
from starforge.domain.progress import Progress
from starforge.domain.queue import FIRST, QueuePlace, entered
from starforge.domain.reason import Reason, ReasonCode, reason
from starforge.domain.spec import JobSpec
from starforge.domain.teardown import Teardown, TeardownState


class JobState(StrEnum):
    SUBMITTED = "SUBMITTED"
    PACKAGING = "PACKAGING"
    LAUNCHING = "LAUNCHING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHING = "FINISHING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


class JobOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


PATH = (JobState.SUBMITTED, JobState.PACKAGING, JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING)
END_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED})

MOVES: Mapping[JobState, frozenset[JobState]] = {
    JobState.SUBMITTED: frozenset({JobState.PACKAGING, JobState.FINISHING}),
    JobState.PACKAGING: frozenset({JobState.LAUNCHING, JobState.FINISHING}),
    JobState.LAUNCHING: frozenset({JobState.PENDING, JobState.FINISHING}),
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.FINISHING}),
    JobState.RUNNING: frozenset({JobState.FINISHING}),
    JobState.FINISHING: END_STATES,
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELED: frozenset(),
}


class ActorKind(StrEnum):
    USER = "USER"
    TOKEN = "TOKEN"  # noqa: S105
    PLATFORM = "PLATFORM"


@dataclass(frozen=True)
class Actor:
    name: str
    kind: ActorKind


PLATFORM = Actor("starforge", ActorKind.PLATFORM)


@dataclass(frozen=True)
class Cancellation:
    """A request to cancel; `grace_until` is None if the command was not running."""

    requested_at: datetime
    requested_by: Actor
    note: str | None = None
    grace_until: datetime | None = None


@dataclass(frozen=True)
class Ending:
    """How an attempt will end as soon as its command has stopped, or when its grace is over at the latest.

    The grace begins when the command is asked to stop. While it is `unasked`, as nobody could, `grace_until` only says
    how long the grace is: from when `reason` was given on.
    """

    outcome: JobOutcome
    reason: Reason
    grace_until: datetime
    unasked: bool = False

    @property
    def over_at(self) -> datetime | None:
        """When the command has had its grace; None while that has not begun."""
        return None if self.unasked else self.grace_until

    def asked(self, at: datetime) -> "Ending":
        """The ending with its whole grace from `at` on."""
        return replace(self, grace_until=at + (self.grace_until - self.reason.since), unasked=False)


@dataclass(frozen=True)
class StateSpan:
    state: JobState
    entered_at: datetime
    left_at: datetime | None = None


@dataclass(frozen=True)
class RunIdentity:
    """What the fleet calls the run: a RayJob's name, namespace and uid, or their like."""

    name: str
    namespace: str | None = None
    uid: str | None = None


@dataclass(frozen=True)
class LogArchive:
    """Totals of the stored logs; `sha256` is of the archive's manifest, None until it was read back."""

    sources: int
    lines: int
    bytes: int
    sha256: str | None = None
    verified_at: datetime | None = None
    reason: Reason | None = None


@dataclass(frozen=True)
class Attempt:
    """One run of a job on a Ray cluster of its own. Times are None until the thing has happened.

    `queue` is None for one that never queues here. `lost` says how a worker was lost while the command ran: it goes on,
    but may fail by it. `stale_code` is the kind of `stale_problem`.
    """

    number: int
    requested_by: Actor
    created_at: datetime
    clocks: tuple[Clock, ...]
    spans: tuple[StateSpan, ...]
    outcome: JobOutcome | None = None
    reason: Reason | None = None
    exit_code: int | None = None
    ending: Ending | None = None
    cancellation: Cancellation | None = None
    run: RunIdentity | None = None
    rayjob: RayJobView | None = None
    head_uid: str | None = None
    lost: Reason | None = None
    nonce_hashes: tuple[str, ...] = ()
    progress: Progress | None = None
    teardown: Teardown | None = None
    archive: LogArchive | None = None
    exited_at: datetime | None = None
    launched_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    logs_archived_at: datetime | None = None
    released_at: datetime | None = None
    ended_at: datetime | None = None
    observed_at: datetime | None = None
    stale_since: datetime | None = None
    stale_problem: str | None = None
    stale_code: ReasonCode = ReasonCode.API_UNAVAILABLE
    heard_again_at: datetime | None = None
    queue: QueuePlace | None = None

    @property
    def state(self) -> JobState:
        return self.spans[-1].state


@dataclass(frozen=True)
class Job:
    """A job with its current attempt. `revision` is that of the row it was read from, 0 for one that is not stored yet.

    `code` is the digest of the code alone, None while it is inline and not packed yet.
    """

    id: JobId
    spec: JobSpec
    created_at: datetime
    created_by: Actor
    updated_at: datetime
    attempt: Attempt
    revision: int = 0
    code: Digest | None = None
    capsule: Digest | None = None
    idempotency_key: str | None = None

    @property
    def state(self) -> JobState:
        return self.attempt.state

    @property
    def run(self) -> RunKey:
        return RunKey(self.id, self.attempt.number)

    @property
    def ended(self) -> bool:
        return self.state in END_STATES

    @property
    def queues(self) -> bool:
        """Whether it waits for its turn in our queue: nothing is done for it before."""
        place = self.attempt.queue
        return self.state is JobState.SUBMITTED and place is not None and place.admitted_at is None

    @property
    def decided(self) -> bool:
        """Whether its outcome is known, so that nothing but teardown is left to do."""
        return self.attempt.outcome is not None

    def with_attempt(self, attempt: Attempt) -> "Job":
        return replace(self, attempt=attempt)


def new_attempt(spec: JobSpec, number: int, by: Actor, at: datetime, *, queued: bool = False) -> Attempt:
    """An attempt as it is when it is asked for: SUBMITTED, its queue clock running, and `queued` if jobs queue here."""
    clocks = deadlines.start(deadlines.new_clocks(spec.deadlines), ClockKind.QUEUE, at)
    attempt = Attempt(number, by, at, clocks, (StateSpan(JobState.SUBMITTED, at),))
    return replace(attempt, queue=entered(at), reason=reason(ReasonCode.QUEUED, FIRST, at)) if queued else attempt


def move(job: Job, to: JobState, at: datetime) -> Job:
    """The job in state `to`, with clocks and times; IllegalMove if the table has no such move."""
    if to not in MOVES[job.state]:
        raise IllegalMove(f"{job.id} can't go from {job.state} to {to}.")
    attempt = job.attempt
    at = max(at, attempt.spans[-1].entered_at)  # clocks of several hosts may disagree
    spans = (*attempt.spans[:-1], replace(attempt.spans[-1], left_at=at), StateSpan(to, at))
    attempt = replace(attempt, spans=spans)
    if to is JobState.PENDING and job.spec.queue:
        return job.with_attempt(replace(attempt, launched_at=at, reason=None))  # its queue clock runs on
    return job.with_attempt(_ENTER.get(to, _enter_plain)(attempt, at))


def advance(job: Job, to: JobState, at: datetime) -> Job:
    """The job moved along the usual path up to `to`, with no state skipped; unchanged if it is there or beyond."""
    if job.state not in PATH:
        return job
    for state in PATH[PATH.index(job.state) + 1 : PATH.index(to) + 1]:
        job = move(job, state, at)
    return job


def has_left_queue(job: Job, at: datetime) -> Job:
    """A launched job that waits in no queue of the cluster any more: its pre-running clock runs."""
    if not job.spec.queue or job.state is not JobState.PENDING:
        return job
    return job.with_attempt(replace(job.attempt, clocks=_start_clocks(job.attempt, at)))


def finish(job: Job, outcome: JobOutcome, why: Reason | None, at: datetime) -> Job:
    """The job in FINISHING with its outcome; what is left is to keep its logs and remove its cluster."""
    job = move(job, JobState.FINISHING, at)
    attempt = replace(job.attempt, outcome=outcome, reason=why, ending=None)
    teardown = Teardown(TeardownState.AWAITING_ARCHIVE, attempt.finished_at or at)
    return job.with_attempt(replace(attempt, teardown=teardown))


def conclude(job: Job, outcome: JobOutcome, why: Reason | None, at: datetime) -> Job:
    """`finish`, except that an ending that was decided on before has the last word."""
    ending = job.attempt.ending
    return finish(job, ending.outcome, ending.reason, at) if ending else finish(job, outcome, why, at)


def end(job: Job, at: datetime) -> Job:
    """The job in the end state of its outcome: its logs are kept and nothing is left in the cluster."""
    outcome, teardown = job.attempt.outcome, job.attempt.teardown
    if outcome is None or teardown is None or teardown.state is not TeardownState.RELEASED:
        raise IllegalMove(f"{job.id} can't end before its outcome is known and its cluster is proven gone.")
    return move(job, JobState(outcome.value), at)


def _enter_pending(attempt: Attempt, at: datetime) -> Attempt:
    return replace(attempt, clocks=_start_clocks(attempt, at), launched_at=at, reason=None)


def _start_clocks(attempt: Attempt, at: datetime) -> deadlines.Clocks:
    """From its turn on it is the pre-running clock that counts."""
    return deadlines.start(deadlines.stop(attempt.clocks, [ClockKind.QUEUE], at), ClockKind.PRE_RUNNING, at)


def _enter_running(attempt: Attempt, at: datetime) -> Attempt:
    clocks = deadlines.stop(attempt.clocks, [ClockKind.QUEUE, ClockKind.PRE_RUNNING], at)
    return replace(attempt, clocks=deadlines.start(clocks, ClockKind.ACTIVE, at), started_at=at, reason=None)


def _enter_finishing(attempt: Attempt, at: datetime) -> Attempt:
    return replace(attempt, clocks=deadlines.stop(attempt.clocks, ClockKind, at), finished_at=at)


def _enter_end(attempt: Attempt, at: datetime) -> Attempt:
    return replace(attempt, ended_at=at, stale_since=None, stale_problem=None)


def _enter_plain(attempt: Attempt, at: datetime) -> Attempt:
    return replace(attempt, reason=None)


_ENTER = {
    JobState.PENDING: _enter_pending,
    JobState.RUNNING: _enter_running,
    JobState.FINISHING: _enter_finishing,
    **dict.fromkeys(END_STATES, _enter_end),
}
