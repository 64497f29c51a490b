"""A playground: its states, every legal move between them, and what a move does to clocks and times."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from starforge.domain import deadlines
from starforge.domain.deadlines import RUNS, Clock, ClockKind, Clocks, ClockState
from starforge.domain.errors import IllegalMove
from starforge.domain.job import Actor, Attempt, Job, JobState, LogArchive, RunIdentity, StateSpan
from starforge.domain.names import JobId, PlaygroundId, RunKey, playground_run, run_name
from starforge.domain.reason import Reason, ReasonCode
from starforge.domain.spec import JobSpec
from starforge.domain.teardown import Teardown, TeardownState

SERVER = "vllm"
"""The container of a playground, on every fleet."""
PORT = 8000
LIFE_MAX_S = 30 * 86400
"""However often it is extended: beyond that the cluster itself ends it."""
FIRST_TOKENS_KEPT = 100
SILENT_S = 60.0
"""A gateway tells more often than this what it is answering, or is taken to be gone with it."""
_NOTICE_SHARE, _NOTICE_MAX = 0.1, timedelta(minutes=5)


class PlaygroundState(StrEnum):
    STARTING = "STARTING"
    READY = "READY"
    EXPIRING = "EXPIRING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"


END_STATES = frozenset({PlaygroundState.STOPPED, PlaygroundState.FAILED})
ANSWERS = frozenset({PlaygroundState.READY, PlaygroundState.EXPIRING})

MOVES: Mapping[PlaygroundState, frozenset[PlaygroundState]] = {
    PlaygroundState.STARTING: END_STATES | {PlaygroundState.READY},
    PlaygroundState.READY: END_STATES | {PlaygroundState.EXPIRING},
    PlaygroundState.EXPIRING: END_STATES | {PlaygroundState.READY},
    PlaygroundState.STOPPED: frozenset(),
    PlaygroundState.FAILED: frozenset(),
}


@dataclass(frozen=True)
class PlaygroundSpec:
    """What to serve, with every default filled in.

    `machine` is what a job of the one machine would be: whatever is the same for both is done by the same code. `model`
    is a hub name or an absolute path; `args` are those of the caller alone.
    """

    machine: JobSpec
    model: str
    served_model_name: str
    args: tuple[str, ...]
    ttl_seconds: int
    idle_seconds: int
    from_job: JobId | None = None


@dataclass(frozen=True)
class Answering:
    """How many requests a gateway was answering when it last told, at `at`."""

    gateway: str
    requests: int
    at: datetime


@dataclass(frozen=True)
class Usage:
    """What it was used for so far; `first_tokens` are the seconds to the first token of the last streams."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    first_tokens: tuple[float, ...] = ()
    answering: tuple[Answering, ...] = ()

    @property
    def active_requests(self) -> int:
        return sum(one.requests for one in self.answering)

    def heard(self, at: datetime) -> "Usage":
        """Without what gateways answered that have been silent for too long."""
        limit = at - timedelta(seconds=SILENT_S)
        return replace(self, answering=tuple(one for one in self.answering if one.at > limit and one.requests))


@dataclass(frozen=True)
class Playground:
    """A playground. `revision` is that of the row it was read from, 0 for one that is not stored yet.

    `run` is what the fleet calls it, and times are None until the thing has happened.
    """

    id: PlaygroundId
    spec: PlaygroundSpec
    state: PlaygroundState
    created_at: datetime
    created_by: Actor
    updated_at: datetime
    clocks: Clocks
    revision: int = 0
    reason: Reason | None = None
    usage: Usage = Usage()
    run: RunIdentity | None = None
    teardown: Teardown | None = None
    archive: LogArchive | None = None
    launched_at: datetime | None = None
    ready_at: datetime | None = None
    last_used_at: datetime | None = None
    ended_at: datetime | None = None
    released_at: datetime | None = None
    logs_archived_at: datetime | None = None
    observed_at: datetime | None = None
    stale_since: datetime | None = None
    stale_problem: str | None = None
    stale_code: ReasonCode = ReasonCode.API_UNAVAILABLE
    idempotency_key: str | None = None

    @property
    def key(self) -> RunKey:
        """Its run, as fleets, logs, events and commands know it."""
        return playground_run(self.id)

    @property
    def pod_name(self) -> str:
        """Name of its Pod, or of its like on a fleet without Pods."""
        return run_name(self.spec.machine.name, self.key)

    @property
    def log(self) -> str:
        """Key of the server's own log."""
        return f"pod/{self.pod_name}/{SERVER}"

    @property
    def ended(self) -> bool:
        return self.state in END_STATES

    @property
    def answers(self) -> bool:
        """Whether requests may be sent to it."""
        return self.state in ANSWERS

    @property
    def expires_at(self) -> datetime | None:
        """When it is stopped if nobody extends or uses it; None before it was ready and after its end."""
        if not self.answers:
            return None
        return deadlines.next_due(tuple(clock for clock in self.clocks if clock.kind is not ClockKind.PRE_RUNNING))

    @property
    def due_at(self) -> datetime | None:
        """When somebody has to look at it because time has passed; None once it has ended."""
        if self.ended:
            return None
        if self.state is PlaygroundState.READY:
            return min(map(announced_at, running(self.clocks)), default=None)
        return deadlines.next_due(self.clocks)

    def as_job(self) -> Job:
        """It as the job of one machine that it would be, for whatever explains why machines wait."""
        state = JobState.RUNNING if self.answers else JobState.PENDING
        attempt = Attempt(
            number=self.key.attempt,
            requested_by=self.created_by,
            created_at=self.created_at,
            clocks=self.clocks,
            spans=(StateSpan(state, self.created_at),),
            reason=self.reason,
            run=self.run,
            launched_at=self.launched_at,
            observed_at=self.observed_at,
        )
        job = JobId(self.id)
        return Job(job, self.spec.machine, self.created_at, self.created_by, self.updated_at, attempt, self.revision)


def new_clocks(spec: PlaygroundSpec, at: datetime) -> Clocks:
    """The clocks of a new playground: that of its start runs, the others from when it is ready."""
    limits = {
        ClockKind.PRE_RUNNING: spec.machine.deadlines.pre_running_seconds,
        ClockKind.TIME_TO_LIVE: spec.ttl_seconds,
        ClockKind.IDLE: spec.idle_seconds,
    }
    clocks = tuple(
        Clock(kind, ClockState.NOT_STARTED, limit) if limit else Clock(kind, ClockState.OFF, None)
        for kind, limit in limits.items()
    )
    return deadlines.start(clocks, ClockKind.PRE_RUNNING, at)


def running(clocks: Clocks) -> list[Clock]:
    return [clock for clock in clocks if clock.state in RUNS and clock.due_at]


def announced_at(clock: Clock) -> datetime:
    """When the end that a running clock brings is announced: the last tenth of its limit, 5 minutes at most, before."""
    if clock.due_at is None:
        raise ValueError(f"the clock {clock.kind} does not run")
    return clock.due_at - min(timedelta(seconds=(clock.limit_s or 0) * _NOTICE_SHARE), _NOTICE_MAX)


def move(playground: Playground, to: PlaygroundState, at: datetime) -> Playground:
    """The playground in state `to`; IllegalMove if the table has no such move."""
    if to not in MOVES[playground.state]:
        raise IllegalMove(f"{playground.id} can't go from {playground.state} to {to}.")
    return replace(playground, state=to)


def become_ready(playground: Playground, at: datetime) -> Playground:
    """The playground that answers for the first time: from now on it lives and can be idle."""
    clocks = deadlines.stop(playground.clocks, [ClockKind.PRE_RUNNING], at)
    for kind in (ClockKind.TIME_TO_LIVE, ClockKind.IDLE):
        clocks = deadlines.start(clocks, kind, at)
    return replace(move(playground, PlaygroundState.READY, at), clocks=clocks, reason=None, ready_at=at)


def end(playground: Playground, to: PlaygroundState, why: Reason | None, at: datetime) -> Playground:
    """The playground at its end; what is left is to remove what it has in the cluster and to keep its log."""
    ended = move(playground, to, at)
    clocks = deadlines.stop(ended.clocks, ClockKind, at)
    teardown = Teardown(TeardownState.DELETING, at)
    usage = replace(ended.usage, answering=())
    return replace(ended, clocks=clocks, reason=why, ended_at=at, teardown=teardown, usage=usage)


def postpone(playground: Playground, kinds: tuple[ClockKind, ...], until: datetime, at: datetime) -> Playground:
    """The playground with those of its running clocks due at `until` at the earliest, and READY if it was expiring."""
    clocks = tuple(
        replace(clock, due_at=until)
        if clock.kind in kinds and clock in running((clock,)) and _is_before(clock, until)
        else clock
        for clock in playground.clocks
    )
    return settled(replace(playground, clocks=clocks), at)


def settled(playground: Playground, at: datetime) -> Playground:
    """The playground in READY or EXPIRING, as its clocks have it at `at`."""
    if not playground.answers:
        return playground
    near = any(announced_at(clock) <= at for clock in running(playground.clocks))
    state = PlaygroundState.EXPIRING if near else PlaygroundState.READY
    return playground if state is playground.state else move(playground, state, at)


def _is_before(clock: Clock, until: datetime) -> bool:
    return clock.due_at is not None and clock.due_at < until
