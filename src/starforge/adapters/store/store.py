"""The store: one short transaction for each call."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from starforge.adapters.store import (
    capsules,
    commands,
    commit,
    counts,
    curves,
    feed,
    health,
    lists,
    logs,
    metrics,
    nodes,
    parts,
    pulses,
    timeline,
)
from starforge.adapters.store import jobs as job_tables
from starforge.adapters.store import sweep as sweeping
from starforge.adapters.store import tokens as token_table
from starforge.adapters.store.clock import DatabaseClock
from starforge.adapters.store.engine import Database
from starforge.adapters.store.failures import was_deadlock
from starforge.adapters.store.job_cache import JobCache
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.capsule import InlineFile
from starforge.domain.changes import CapsuleRecord, Changes, CodeRecord, IdempotencyRecord, Lease, Upload
from starforge.domain.errors import StoreUnavailable
from starforge.domain.health import HealthReading, ObserverHeard, ParkedCommand
from starforge.domain.job import Attempt, Job
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.names import CommandId, Digest, JobId, RunKey
from starforge.domain.observation import PodView
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
from starforge.domain.timeline import Entry
from starforge.domain.tokens import Token, TokenId

_DEADLOCK_TRIES = 5
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Step = Callable[Concatenate[Connection, _Args], _Result]


class SqlStore:
    """The port `Store`. `url` is `sqlite:///<path>` or `postgresql://…`; run `migrate(url)` before.

    `now` is the database's own time; `clock` can be given by tests.
    """

    def __init__(self, url: str, clock: DatabaseClock | None = None) -> None:
        self.database = Database(url)
        self.now = clock or DatabaseClock()
        if not self.database.is_sqlite:
            self.now.follow(self.database.engine)
        self._job_cache = JobCache()
        self._node_cache = nodes.NodeCache()

    def forget_nodes(self) -> None:
        """Read the nodes of fleets anew: for whoever has put another database in the place of this one."""
        self._node_cache = nodes.NodeCache()

    def close(self) -> None:
        """Close every connection."""
        self.database.close()

    def commit(self, changes: Changes, *, at: datetime, lease: Lease | None = None) -> Sequence[FeedRow]:
        return self._write(commit.write, changes, at=at, lease=lease)

    def take(self, command: CommandId, *, token: str, at: datetime, lease_s: float) -> Lease | None:
        return self._write(commands.take, command, token=token, at=at, lease_s=lease_s)

    def renew(self, lease: Lease, *, at: datetime, lease_s: float) -> bool:
        return self._write(commands.renew, lease, at=at, lease_s=lease_s)

    def due(self, *, at: datetime, limit: int, jobs: Sequence[JobId] | None = None) -> Sequence[CommandId]:
        return self._read(commands.due, at=at, limit=limit, jobs=jobs)

    def renew_observer(self, fleet: str, *, holder: str, at: datetime, lease_s: float) -> bool:
        return self._write(pulses.renew_observer, fleet, holder=holder, at=at, lease_s=lease_s)

    def note_heard(self, fleet: str, *, holder: str, heard: ObserverHeard) -> None:
        self._write(health.note_heard, fleet, holder=holder, heard=heard)

    def health(self, *, at: datetime) -> HealthReading:
        return self._read(health.read, at=at)

    def fleet_nodes(self, fleet: str) -> FleetNodes | None:
        return self._read(self._node_cache.fleet_nodes, fleet)

    def parked(self, *, limit: int) -> Sequence[ParkedCommand]:
        return self._read(health.parked, limit=limit)

    def pulse(self, name: str, *, at: datetime, pause_s: float) -> datetime:
        return self._write(pulses.pulse, name, at=at, pause_s=pause_s)

    def job(self, job: JobId) -> Job | None:
        return self.jobs_by_id([job]).get(job)

    def jobs_by_id(self, jobs: Sequence[JobId]) -> Mapping[JobId, Job]:
        return self._read(job_tables.jobs_by_id, jobs)

    def attempts(self, jobs: Sequence[JobId]) -> Mapping[JobId, Sequence[Attempt]]:
        return self._read(job_tables.attempts, jobs)

    def overdue(self, *, at: datetime, limit: int) -> Sequence[JobId]:
        return self._read(job_tables.overdue, at=at, limit=limit)

    def job_page(self, which: JobFilter, order: JobOrder, window: Window) -> Page[Job]:
        return self._read(lists.job_page, self._job_cache, which, order, window)

    def job_count(self, which: JobFilter, *, at_most: int) -> int:
        return self._read(lists.job_count, which, at_most=at_most)

    def job_counts(
        self, which: JobFilter, by: JobCountKey, *, label: str | None, at_most: int, timeout_s: float
    ) -> Sequence[JobCount]:
        return self._read(counts.job_counts, which, by, label=label, at_most=at_most, timeout_s=timeout_s)

    def pods(self, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[PodView]]:
        return self._read(job_tables.pods, runs)

    def entries(self, ids: Sequence[str]) -> Mapping[str, Entry]:
        return self._read(timeline.entries, ids)

    def entry_page(self, which: EventFilter, window: Window) -> Page[Entry]:
        return self._read(lists.entry_page, which, window)

    def entry_pages(self, asked: Sequence[EventsAsked]) -> Mapping[EventsAsked, Page[Entry]]:
        return self._read(lists.entry_pages, asked)

    def log_sources(self, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[LogSource]]:
        return self._read(logs.log_sources, runs)

    def log_lines(self, which: LogRange) -> Sequence[LogLine]:
        return self._read(logs.log_lines, which)

    def log_ranges(self, asked: Sequence[LogRange]) -> Mapping[LogRange, StoredLines]:
        return self._read(logs.log_ranges, asked)

    def take_unmoved_log(self, *, at: datetime, lease_s: float) -> UnmovedLog | None:
        return self._write(parts.take_unmoved_log, at=at, lease_s=lease_s)

    def keep_log_part(self, part: LogPart) -> None:
        self._write(parts.keep_log_part, part)

    def drop_moved_lines(self, source: LogSource, *, at: datetime, limit: int) -> bool:
        return self._write(parts.drop_moved_lines, source, at=at, limit=limit)

    def metric_points(
        self, run: RunKey, names: Sequence[str] | None, first_step: int | None, last_step: int | None
    ) -> Sequence[MetricPoint]:
        return self._read(metrics.metric_points, run, names, first_step, last_step)

    def metric_names(self, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[str]]:
        return self._read(metrics.metric_names, runs)

    def metric_curves(self, runs: Sequence[RunKey], which: CurveRange) -> Mapping[RunKey, Sequence[Curve]]:
        return self._read(curves.metric_curves, runs, which)

    def code(self, digest: Digest) -> CodeRecord | None:
        return self._read(capsules.code, digest)

    def upload(self, digest: Digest) -> Upload | None:
        return self._read(capsules.upload, digest)

    def capsules(
        self, digests: Sequence[Digest], *, projects: Sequence[str] | None = None
    ) -> Mapping[Digest, CapsuleRecord]:
        return self._read(capsules.capsules, digests, projects=projects)

    def projects(self, *, limit: int) -> Sequence[str]:
        return self._read(lists.projects, limit=limit)

    def inline_code(self, job: JobId) -> Sequence[InlineFile] | None:
        return self._read(capsules.inline_code, job)

    def known_code(self, digests: Sequence[Digest]) -> frozenset[Digest]:
        return self._read(capsules.known_code, digests)

    def idempotency(self, project: str, mutation: str, key: str) -> IdempotencyRecord | None:
        return self.idempotencies(mutation, [(project, key)]).get((project, key))

    def idempotencies(
        self, mutation: str, keys: Sequence[tuple[str, str]]
    ) -> Mapping[tuple[str, str], IdempotencyRecord]:
        return self._read(capsules.idempotencies, mutation, keys)

    def prune_idempotency(self, *, before: datetime) -> int:
        return self._write(capsules.prune_idempotency, before=before)

    def feed(self, *, after: int, limit: int) -> Sequence[FeedRow]:
        return self._read(feed.read, after=after, limit=limit)

    def feed_bounds(self) -> tuple[int, int]:
        return self._read(feed.bounds)

    def prune_feed(self, *, before: datetime) -> int:
        total = 0
        while dropped := self._write(feed.prune, before=before):
            total += dropped
        return total

    def prune_commands(self, *, before: datetime) -> int:
        total = 0
        while dropped := self._write(sweeping.prune_commands, before=before):
            total += dropped
        return total

    def unused_uploads(self, *, before: datetime, limit: int) -> Sequence[Upload]:
        return self._read(sweeping.unused_uploads, before=before, limit=limit)

    def forget_upload(self, upload: Upload) -> bool:
        return self._write(sweeping.forget_upload, upload)

    def installation(self, *, new: str) -> str:
        return self._read(sweeping.known_installation) or self._write(sweeping.installation, new=new)

    def strays(self, fleet: str) -> Mapping[RunKey, datetime]:
        return self._read(sweeping.strays, fleet)

    def note_strays(self, fleet: str, runs: Sequence[RunKey], *, at: datetime) -> None:
        self._write(sweeping.note_strays, fleet, runs, at=at)

    def add_token(self, token: Token) -> None:
        self._write(token_table.add_token, token)

    def tokens(self, ids: Sequence[TokenId]) -> Mapping[TokenId, Token]:
        return self._read(token_table.tokens, ids)

    def all_tokens(self) -> Sequence[Token]:
        return self._read(token_table.all_tokens)

    def revoke_token(self, token: TokenId, *, at: datetime) -> Token | None:
        return self._write(token_table.revoke_token, token, at=at)

    def touch_token(self, token: TokenId, *, at: datetime) -> None:
        self._write(token_table.touch_token, token, at=at)

    def _read(self, step: _Step[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        with self.database.reading() as connection:
            return step(connection, *args, **kwargs)

    def _write(self, step: _Step[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        for _ in range(_DEADLOCK_TRIES - 1):
            try:
                return self._write_once(step, *args, **kwargs)
            except StoreUnavailable as error:
                if not was_deadlock(error):
                    raise
        return self._write_once(step, *args, **kwargs)

    def _write_once(self, step: _Step[_Args, _Result], *args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        with self.database.writing() as connection:
            return step(connection, *args, **kwargs)
