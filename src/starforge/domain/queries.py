"""What can be asked of the store: filters, orders, pages, and rows of the feed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar

from starforge.domain.changes import Aspect
from starforge.domain.job import Job, JobOutcome, JobState
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import EventType, Severity

Row = TypeVar("Row")


class LabelOperator(StrEnum):
    IN = "IN"
    NOT_IN = "NOT_IN"
    EXISTS = "EXISTS"
    DOES_NOT_EXIST = "DOES_NOT_EXIST"


@dataclass(frozen=True)
class LabelSelector:
    key: str
    operator: LabelOperator = LabelOperator.IN
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobFilter:
    """Which jobs: all given fields must match, one of a tuple is enough, () matches nothing, None anything."""

    ids: tuple[JobId, ...] | None = None
    states: tuple[JobState, ...] | None = None
    active: bool | None = None
    outcomes: tuple[JobOutcome, ...] | None = None
    reasons: tuple[ReasonCode, ...] | None = None
    projects: tuple[str, ...] | None = None
    fleets: tuple[str, ...] | None = None
    series: tuple[str, ...] | None = None
    labels: tuple[LabelSelector, ...] = ()
    name_prefix: str | None = None
    created_by: tuple[str, ...] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    ended_after: datetime | None = None
    ended_before: datetime | None = None
    idempotency_keys: tuple[str, ...] | None = None
    code: Digest | None = None


class JobOrderField(StrEnum):
    CREATED_AT = "CREATED_AT"
    UPDATED_AT = "UPDATED_AT"
    STARTED_AT = "STARTED_AT"
    ENDED_AT = "ENDED_AT"
    NAME = "NAME"
    PRIORITY = "PRIORITY"
    GPUS = "GPUS"


@dataclass(frozen=True)
class JobOrder:
    """Order of jobs; ties are broken by id, rows without a value come last either way."""

    field: JobOrderField = JobOrderField.CREATED_AT
    descending: bool = True


class JobCountKey(StrEnum):
    STATE = "STATE"
    OUTCOME = "OUTCOME"
    REASON = "REASON"
    PROJECT = "PROJECT"
    FLEET = "FLEET"
    SERIES = "SERIES"
    CREATED_BY = "CREATED_BY"
    LABEL = "LABEL"


@dataclass(frozen=True)
class JobCount:
    """How many jobs share a value; None is that of jobs without one."""

    value: str | None
    count: int


@dataclass(frozen=True)
class EventFilter:
    jobs: tuple[JobId, ...] | None = None
    types: tuple[EventType, ...] | None = None
    min_severity: Severity | None = None
    projects: tuple[str, ...] | None = None
    fleets: tuple[str, ...] | None = None
    attempt: int | None = None
    kubernetes_reasons: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


Key = tuple[str | int | float | None, ...]


@dataclass(frozen=True)
class Window:
    """A page: `limit` rows after and before the keys of rows (exclusive), from the end if `backward`."""

    limit: int
    after: Key | None = None
    before: Key | None = None
    backward: bool = False


EventsAsked = tuple[EventFilter, Window]


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows in order, each with its key, and whether there are more on either side."""

    rows: Sequence[tuple[Key, Row]]
    has_next: bool
    has_previous: bool


class FeedKind(StrEnum):
    JOB = "JOB"
    EVENT = "EVENT"
    LOG = "LOG"
    HEALTH = "HEALTH"
    CAPACITY = "CAPACITY"


@dataclass(frozen=True)
class FeedRow:
    """One change. `subject` is a job's id, an entry's id, a log's `<run> <source key>`, what a report of health is
    about, or the fleet whose nodes changed; `revision` is the job's.

    `now` gives the job at that revision, to those who are told of the row as it is written: the table does not hold it.
    ValueError if another version of StarForge told it in a form that this one can't read.
    """

    position: int
    at: datetime
    kind: FeedKind
    subject: str
    job: JobId | None
    project: str | None
    revision: int = 0
    aspects: frozenset[Aspect] = frozenset()
    now: Callable[[], Job] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class LogRange:
    """Lines `first` to `last` (both included, numbers from 1) of a source of a run."""

    run: RunKey
    source: str
    first: int
    last: int


@dataclass(frozen=True)
class LogBlock:
    """Where lines `first` to `last` are: `size` bytes from byte `start` on of the object `key`."""

    key: str
    first: int
    last: int
    start: int
    size: int


@dataclass(frozen=True)
class StoredLines:
    """What the database has of a range: `lines` are its end, and `blocks` hold those before them, and maybe others."""

    lines: Sequence[LogLine]
    blocks: Sequence[LogBlock] = ()


@dataclass(frozen=True)
class LogPart:
    """Lines of a log that follow on each other and are in one object, by its blocks."""

    run: RunKey
    source: str
    blocks: tuple[LogBlock, ...]

    @property
    def key(self) -> str:
        return self.blocks[0].key

    @property
    def first(self) -> int:
        return self.blocks[0].first

    @property
    def last(self) -> int:
        return self.blocks[-1].last


@dataclass(frozen=True)
class UnmovedLog:
    """An archived log of which rows are left, though parts may hold all up to line `moved`."""

    source: LogSource
    moved: int


@dataclass(frozen=True)
class CurveRange:
    """Which curves of a run: of which metrics (the first `METRICS_MAX` by name if None), between which steps (both
    included), and in how many buckets at most (2 or more)."""

    names: tuple[str, ...] | None
    first_step: int | None = None
    last_step: int | None = None
    most: int = 500


METRICS_MAX = 20
