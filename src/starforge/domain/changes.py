"""What one transaction writes: decided first, as plain data, and applied all or nothing by the store.

Every list is written in order. Each job and entry gets a row of the feed, and so does each log that grew, each
report of health that is told, and what was seen of nodes, at a position that is contiguous and in commit order.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from starforge.domain.capacity.nodes import NodesSeen
from starforge.domain.capsule import InlineFile
from starforge.domain.health import HealthWrite
from starforge.domain.job import Job
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.names import CommandId, Digest, JobId, RunKey
from starforge.domain.observation import PodView
from starforge.domain.progress import MetricPoint
from starforge.domain.timeline import CommandKind, Entry


class Aspect(StrEnum):
    """What changed about a job, so that a page can skip what it does not show."""

    STATE = "STATE"
    REASON = "REASON"
    PROGRESS = "PROGRESS"
    PODS = "PODS"
    CLOCKS = "CLOCKS"
    LOGS = "LOGS"
    OBSERVATION = "OBSERVATION"
    TEARDOWN = "TEARDOWN"
    QUEUE = "QUEUE"


@dataclass(frozen=True)
class NewCommand:
    """Work to be done at `due_at` or later; an open one of its run and kind is kept and brought forward instead."""

    id: CommandId
    kind: CommandKind
    run: RunKey
    due_at: datetime


@dataclass(frozen=True)
class Command:
    """A command as it was taken; `tries` counts this one, `outages` those in which something could not be asked."""

    id: CommandId
    kind: CommandKind
    run: RunKey
    tries: int
    outages: int = 0


@dataclass(frozen=True)
class Lease:
    """The right to finish a command, fenced: a commit under a `token` that was superseded is refused."""

    command: Command
    token: str
    until: datetime


@dataclass(frozen=True)
class Watcher:
    """Whoever observes a fleet; their commits are refused (Superseded) once the lease is somebody else's."""

    fleet: str
    holder: str


@dataclass(frozen=True)
class JobWrite:
    """`job` replaces the row if that still has `job.revision` (else StaleRevision); the row gets the next revision.

    Without aspects it is a quiet write: the feed does not tell of it.
    """

    job: Job
    aspects: frozenset[Aspect]


@dataclass(frozen=True)
class NodesWrite:
    """What was seen of the nodes of a fleet; the feed tells of it in one row."""

    fleet: str
    seen: NodesSeen


@dataclass(frozen=True)
class LogWrite:
    """`source` as it is after `lines` were appended to it.

    StaleRevision if the stored one does not have `source.lines` less these, or is closed and would get more.
    """

    source: LogSource
    lines: tuple[LogLine, ...] = ()


@dataclass(frozen=True)
class CodeRecord:
    """Code in the object store under `code/<digest>.zip`."""

    digest: Digest
    files: int
    bytes: int
    transport_sha256: str


@dataclass(frozen=True)
class Upload:
    """Code that a caller announced and may have sent to `uploads/<transport_sha256>.zip`; not verified yet."""

    digest: Digest
    transport_sha256: str
    bytes: int
    files: int
    requested_at: datetime


@dataclass(frozen=True)
class CapsuleRecord:
    """A Capsule in the object store under `capsules/<digest>.zip`."""

    digest: Digest
    code: Digest
    files: int
    bytes: int
    transport_sha256: str
    runner_digest: str
    created_at: datetime


@dataclass(frozen=True)
class InlineCode:
    job: JobId
    files: tuple[InlineFile, ...]


@dataclass(frozen=True)
class IdempotencyRecord:
    """`key` is its own per project and mutation; kept for at least a day."""

    project: str
    mutation: str
    key: str
    body_sha256: str
    job: JobId
    attempt: int
    created_at: datetime


@dataclass(frozen=True)
class Retry:
    """A command to be tried again at `due_at`: because of `error`, or only because it is not done yet (None)."""

    due_at: datetime
    error: str | None = None
    outage: bool = False


@dataclass
class Changes:
    """A transaction to be. `done`, `retry` and `park` say what becomes of the leased command it is committed under.

    `watcher` is who observed what is written; None if it does not follow from a watch.
    """

    jobs: list[JobWrite] = field(default_factory=list)
    commands: list[NewCommand] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    pods: list[tuple[RunKey, PodView]] = field(default_factory=list)
    logs: list[LogWrite] = field(default_factory=list)
    metrics: list[tuple[RunKey, MetricPoint]] = field(default_factory=list)
    inline: list[InlineCode] = field(default_factory=list)
    drop_inline: list[JobId] = field(default_factory=list)
    code: list[CodeRecord] = field(default_factory=list)
    uploads: list[Upload] = field(default_factory=list)
    capsules: list[CapsuleRecord] = field(default_factory=list)
    idempotency: list[IdempotencyRecord] = field(default_factory=list)
    health: list[HealthWrite] = field(default_factory=list)
    nodes: list[NodesWrite] = field(default_factory=list)
    done: bool = False
    retry: Retry | None = None
    park: str | None = None
    watcher: Watcher | None = None

    def job(self, job: Job, *aspects: Aspect) -> None:
        self.jobs.append(JobWrite(job, frozenset(aspects)))

    def extend(self, entries: Iterable[Entry]) -> None:
        self.entries.extend(entries)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return self == Changes()
