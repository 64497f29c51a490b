"""What the domain needs from outside. Each port has one contract suite in tests/contract that every adapter passes."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.capsule import InlineFile, PackedCapsule, PackedCode
from starforge.domain.changes import CapsuleRecord, Changes, CodeRecord, Command, IdempotencyRecord, Lease, Upload
from starforge.domain.health import Access, FleetProbe, HealthReading, ObserverHeard, ParkedCommand
from starforge.domain.job import Attempt, Job, RunIdentity
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.names import CommandId, Digest, JobId, RunKey
from starforge.domain.observation import PodView, RunSeen, Seen
from starforge.domain.progress import Curve, MetricPoint
from starforge.domain.queries import (
    CurveRange,
    EventFilter,
    EventsAsked,
    FeedRow,
    JobCount,
    JobCountKey,
    JobFilter,
    JobOrder,
    LogPart,
    LogRange,
    Page,
    StoredLines,
    UnmovedLog,
    Window,
)
from starforge.domain.queue import Queueing
from starforge.domain.rights import Caller
from starforge.domain.spec import FleetDefaults, JobSpec
from starforge.domain.teardown import Found, RemainingObject
from starforge.domain.timeline import Entry
from starforge.domain.tokens import Token, TokenId

# --- the database -----------------------------------------------------------------------------------------------------


class TokenStore(Protocol):
    """The tokens in the database. Raises StoreUnavailable when it can't be asked."""

    def add_token(self, token: Token) -> None:
        """Store a new token; StaleRevision if there is one of its id."""
        ...

    def tokens(self, ids: Sequence[TokenId]) -> Mapping[TokenId, Token]:
        """Those of the ids that there are, revoked and expired ones included."""
        ...

    def all_tokens(self) -> Sequence[Token]:
        """Every token in the order in which they were made."""
        ...

    def revoke_token(self, token: TokenId, *, at: datetime) -> Token | None:
        """The token, revoked, when it first was; None if there is none. Safe to repeat."""
        ...

    def touch_token(self, token: TokenId, *, at: datetime) -> None:
        """Note that it was used; the newest time stays."""
        ...


class Store(TokenStore, Protocol):
    """The database, synchronous. Raises StoreUnavailable when it can't be asked; a commit is all or nothing."""

    def commit(self, changes: Changes, *, at: datetime, lease: Lease | None = None) -> Sequence[FeedRow]:
        """Write `changes` and return the feed rows they got, in order.

        StaleRevision if a job was changed by somebody else, if `lease` has run out or was superseded, or if an
        idempotency key exists; nothing is written then.
        """
        ...

    def take(self, command: CommandId, *, token: str, at: datetime, lease_s: float) -> Lease | None:
        """Lease a due command; None if it is done, parked, not due or leased, or another one of its job is leased."""
        ...

    def renew(self, lease: Lease, *, at: datetime, lease_s: float) -> bool:
        """Have a lease end `lease_s` seconds from now; False if it is over already."""
        ...

    def due(self, *, at: datetime, limit: int, jobs: Sequence[JobId] | None = None) -> Sequence[CommandId]:
        """Commands that are due and not leased, oldest first; of some jobs only, if these are given."""
        ...

    def renew_observer(self, fleet: str, *, holder: str, at: datetime, lease_s: float) -> bool:
        """Take or keep the lease of a fleet's observer; False while another holder has it."""
        ...

    def note_heard(self, fleet: str, *, holder: str, heard: ObserverHeard) -> None:
        """Note what the observer that has a fleet's lease has heard; nothing if `holder` does not have it."""
        ...

    def health(self, *, at: datetime) -> HealthReading:
        """The newest reports, who observes each fleet, and the commands that are due at `at`."""
        ...

    def fleet_nodes(self, fleet: str) -> FleetNodes | None:
        """The nodes of a fleet as last seen; None if they never were. Cheap when nothing changed since it was asked."""
        ...

    def parked(self, *, limit: int) -> Sequence[ParkedCommand]:
        """Commands that failed too often, newest first."""
        ...

    def pulse(self, name: str, *, at: datetime, pause_s: float) -> datetime:
        """Note that something goes on; returns since when it has, with no pause longer than `pause_s`."""
        ...

    def job(self, job: JobId) -> Job | None: ...

    def jobs_by_id(self, jobs: Sequence[JobId]) -> Mapping[JobId, Job]: ...

    def attempts(self, jobs: Sequence[JobId]) -> Mapping[JobId, Sequence[Attempt]]:
        """All attempts of each job, oldest first, the current one included."""
        ...

    def overdue(self, *, at: datetime, limit: int) -> Sequence[JobId]:
        """Jobs that have a clock or an ending whose time is over."""
        ...

    def job_page(self, which: JobFilter, order: JobOrder, window: Window) -> Page[Job]: ...

    def job_count(self, which: JobFilter, *, at_most: int) -> int: ...

    def job_counts(
        self, which: JobFilter, by: JobCountKey, *, label: str | None, at_most: int, timeout_s: float
    ) -> Sequence[JobCount]:
        """Jobs per value, the largest groups first; `label` is the key with LABEL. TookTooLong after `timeout_s`."""
        ...

    def pods(self, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[PodView]]:
        """Pods of each run in the order in which they were created, gone ones included."""
        ...

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]: ...

    def entry_page(self, which: EventFilter, window: Window) -> Page[Entry]:
        """Entries in the order in which they were first written; the key is that of Entry's row."""
        ...

    def entry_pages(self, asked: Sequence[EventsAsked]) -> Mapping[EventsAsked, Page[Entry]]:
        """Many pages at once, each as `entry_page` gives it."""
        ...

    def log_sources(self, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[LogSource]]: ...

    def log_lines(self, which: LogRange) -> Sequence[LogLine]:
        """Lines of a log that are rows, as all are until it is archived; not those that were moved."""
        ...

    def log_ranges(self, asked: Sequence[LogRange]) -> Mapping[LogRange, StoredLines]:
        """Lines of many logs at once, or where those are that are rows no more (see `log_parts.whole`)."""
        ...

    def take_unmoved_log(self, *, at: datetime, lease_s: float) -> UnmovedLog | None:
        """An archived log that has rows, the one whose turn it is; it has no other turn before `lease_s` are over."""
        ...

    def keep_log_part(self, part: LogPart) -> None:
        """Note where lines are too; StaleRevision if they are not those that follow on the parts there are."""
        ...

    def drop_moved_lines(self, source: LogSource, *, at: datetime, limit: int) -> bool:
        """Drop some rows all of whose lines are in parts, and say whether there are more of them.

        When there are not, it is the log's turn again at once, or it is moved and has none any more.
        """
        ...

    def metric_points(
        self, run: RunKey, names: Sequence[str] | None, first_step: int | None, last_step: int | None
    ) -> Sequence[MetricPoint]:
        """Points in the order in which they were reported."""
        ...

    def metric_names(self, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[str]]:
        """Names of the metrics of each run, in the order of their first report."""
        ...

    def metric_curves(self, runs: Sequence[RunKey], which: CurveRange) -> Mapping[RunKey, Sequence[Curve]]:
        """Curves of each run, thinned by the database so that no more than the buckets leave it; in order of name."""
        ...

    def code(self, digest: Digest) -> CodeRecord | None: ...

    def upload(self, digest: Digest) -> Upload | None: ...

    def capsules(
        self, digests: Sequence[Digest], *, projects: Sequence[str] | None = None
    ) -> Mapping[Digest, CapsuleRecord]:
        """Capsules by digest; only those that a job of `projects` uses, if these are given."""
        ...

    def projects(self, *, limit: int) -> Sequence[str]:
        """Names of the projects that have jobs, in order, the first `limit` of them."""
        ...

    def inline_code(self, job: JobId) -> Sequence[InlineFile] | None: ...

    def known_code(self, digests: Sequence[Digest]) -> frozenset[Digest]:
        """Which of them are stored as code or were announced by an upload."""
        ...

    def idempotency(self, project: str, mutation: str, key: str) -> IdempotencyRecord | None: ...

    def idempotencies(
        self, mutation: str, keys: Sequence[tuple[str, str]]
    ) -> Mapping[tuple[str, str], IdempotencyRecord]:
        """Records of those of the keys, each with its project before it, that were used."""
        ...

    def prune_idempotency(self, *, before: datetime) -> int:
        """Forget keys that were used earlier; returns how many."""
        ...

    def feed(self, *, after: int, limit: int) -> Sequence[FeedRow]:
        """Rows after a position, in order."""
        ...

    def feed_bounds(self) -> tuple[int, int]:
        """(floor, head): the last position that was dropped (0 if none) and the newest one (0 if none)."""
        ...

    def prune_feed(self, *, before: datetime) -> int:
        """Drop rows of the feed that are older; returns how many."""
        ...

    def prune_commands(self, *, before: datetime) -> int:
        """Forget commands that were done earlier; returns how many."""
        ...

    def unused_uploads(self, *, before: datetime, limit: int) -> Sequence[Upload]:
        """Uploads that were asked for earlier and that no job is to be packaged from, oldest first.

        Not those whose object somebody else announced since.
        """
        ...

    def forget_upload(self, upload: Upload) -> bool:
        """Forget an upload; False if it was asked for again meanwhile, and stays then."""
        ...

    def installation(self, *, new: str) -> str:
        """Id of this installation: the same for all who share the database, `new` if it has none yet."""
        ...

    def strays(self, fleet: str) -> Mapping[RunKey, datetime]:
        """Runs of a fleet that were noted as strays, and since when each has been noted every time."""
        ...

    def note_strays(self, fleet: str, runs: Sequence[RunKey], *, at: datetime) -> None:
        """Note that these runs are strays at `at`, and that no others are."""
        ...


# --- the fleet --------------------------------------------------------------------------------------------------------


class FleetKind(StrEnum):
    KUBERAY = "KUBERAY"
    LOCAL = "LOCAL"
    SIMULATED = "SIMULATED"


@dataclass(frozen=True)
class Signed:
    """A request that anybody who has it can make until `expires_at`: a secret. `url` is https, http or file."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    expires_at: datetime


@dataclass(frozen=True)
class LaunchOrder:
    """Everything a fleet needs to start an attempt.

    `capsule` is the signed GET of the Capsule of that digest, whose zip has `transport_sha256`; `claim` is the signed
    conditional PUT of the attempt's claim, which the runner tries until `claim_until`. `nonce` authenticates the
    runner's wire lines. `installation` is what `Fleet.ours` finds the run by, where several share a fleet.
    """

    run: RunKey
    name: str
    spec: JobSpec
    capsule: Signed
    capsule_digest: Digest
    transport_sha256: str
    claim: Signed
    claim_until: datetime | None
    nonce: str
    installation: str | None = None


class StopAnswer(StrEnum):
    """What became of the wish that a command ends."""

    ASKED = "ASKED"
    NOBODY_TO_ASK = "NOBODY_TO_ASK"


@dataclass(frozen=True)
class Resume:
    """Where the observer left a stream: the cursor after the last line kept, or that it was closed."""

    cursor: str | None
    closed: bool = False


class Fleet(Protocol):
    """A place where jobs run. FleetUnavailable when it can't be asked, FleetRefused when it says no for good."""

    name: str
    kind: FleetKind

    def defaults(self) -> FleetDefaults: ...

    def signature_seconds(self, spec: JobSpec) -> float | None:
        """How long the signed GET of the Capsule must live for this spec, None for as long as the store signs."""
        ...

    def launch(self, order: LaunchOrder) -> RunIdentity:
        """Create the run, or find and adopt the one of the same `run`; safe to repeat."""
        ...

    def stop(self, run: RunKey, *, grace_s: int) -> StopAnswer:
        """Ask the command to end: SIGTERM, then SIGKILL after the grace. Returns at once; safe to repeat."""
        ...

    def delete(self, run: RunKey) -> None:
        """Ask for everything of the run to be removed; safe to repeat and when nothing is there."""
        ...

    def remaining(self, run: RunKey) -> Sequence[RemainingObject]:
        """What is still there of the run, asked right now; empty proves that nothing is left."""
        ...

    def ours(self, installation: str) -> Sequence[Found]:
        """Everything that is there right now of any run, but for what was launched by another installation."""
        ...

    def look(self, run: RunKey) -> RunSeen:
        """The run as it is right now, for a decision that can't wait for the watch."""
        ...

    def health(self, asked: Access | None = None) -> FleetProbe:
        """How it and its parts are, asked right now and within a few seconds; what can't be asked is UNKNOWN, and why.

        `asked` is what our account was last asked and answered, which need not be asked again each time. Raises
        nothing of Outside.
        """
        ...

    def watch(self, resume: Callable[[RunKey, str], Resume], stop: threading.Event) -> Iterator[Seen]:
        """Everything that happens to runs of ours, from what there is now on, until `stop` is set.

        `resume(run, source)` tells where to go on with a stream, and is asked before the first line of it. Outages are
        told as FleetHeard and retried for ever. Yields at least once a second if only FleetHeard.
        """
        ...


# --- the object store -------------------------------------------------------------------------------------------------


class Audience(StrEnum):
    """Who will make a signed request, as they may reach the store by different names."""

    POD = "POD"
    CLIENT = "CLIENT"


class ObjectStore(Protocol):
    """Objects by key. Raises ObjectStoreUnavailable when it can't be asked."""

    def prepare(self) -> None:
        """Make the bucket or directory if it is missing; safe to repeat."""
        ...

    def check(self) -> None:
        """Write a small object and read it back, each within some seconds; ObjectStoreUnavailable if that fails."""
        ...

    def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> bool:
        """Store an object; with `only_new`, False if the key is taken, and nothing changes then."""
        ...

    def size(self, key: str) -> int | None:
        """Bytes of an object; None if there is none."""
        ...

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Part of an object; NotFound if there is none."""
        ...

    def fetch(self, key: str, into: Path) -> None:
        """Copy an object into a file; NotFound if there is none."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; safe when there is none."""
        ...

    def sign_get(self, key: str, *, seconds: float, audience: Audience) -> Signed: ...

    def sign_put(self, key: str, *, seconds: float, audience: Audience, only_new: bool) -> Signed:
        """A signed PUT; with `only_new` it answers 412 when the key is taken."""
        ...

    @property
    def longest_signature_s(self) -> float: ...


# --- who asks ---------------------------------------------------------------------------------------------------------


class Identities(Protocol):
    """Whom an issuer of OpenID Connect vouches for."""

    async def caller(self, token: str) -> Caller:
        """Who shows a JWT; Unauthenticated with what is wrong, Forbidden if it gives no role or project here.

        IssuerUnavailable if its key is not known and the issuer can't be asked for it.
        """
        ...


# --- packing, telling, time -------------------------------------------------------------------------------------------


class Packer(Protocol):
    """Makes archives. Raises CodeRefused with every problem of code that can't be taken."""

    def pack_files(self, files: Sequence[InlineFile], into: Path) -> PackedCode: ...

    def pack_directory(self, root: Path, into: Path) -> PackedCode: ...

    def open_code(self, archive: Path) -> PackedCode: ...

    def build_capsule(self, code: PackedCode, jobspec: bytes, into: Path) -> PackedCapsule: ...


class Nudge(Protocol):
    """Tells a worker to look at commands. Never raises, never takes over a second: the tick re-sends what is due."""

    def __call__(self, commands: Sequence[CommandId]) -> None: ...


class Publish(Protocol):
    """Tells every gateway about new rows of the feed. Never raises: gateways read the table when they hear nothing."""

    def __call__(self, rows: Sequence[FeedRow]) -> None: ...


@dataclass(frozen=True)
class Ports:
    """Everything an action may use.

    `scratch` gives a directory that is gone after its block, `random` 32 lower-case hexadecimal digits. `now` is the
    same on every host. `queueing` says whether jobs queue until they fit. `lease` is that of the command that is being
    done: all its commits are made under it.
    """

    store: Store
    fleet: Fleet
    objects: ObjectStore
    packer: Packer
    nudge: Nudge
    publish: Publish
    now: Callable[[], datetime]
    random: Callable[[], str]
    scratch: Callable[[], AbstractContextManager[Path]]
    lease: Lease | None = None
    queueing: Queueing = Queueing.OFF


__all__ = [
    "Audience", "Command", "Fleet", "FleetKind", "Identities", "LaunchOrder", "Nudge", "ObjectStore", "Packer", "Ports",
    "Publish", "Resume", "Signed", "StopAnswer", "Store", "TokenStore",
]  # fmt: skip
