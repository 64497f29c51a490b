"""Takes in what a fleet tells: Pods, events, log lines, and what follows from them for each job."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import GUARD_TRIES, apply, command
from starforge.domain.actions.launch import nonce_hash
from starforge.domain.changes import Aspect, Changes, LogWrite, NewCommand, Watcher
from starforge.domain.endings import corrected
from starforge.domain.errors import StaleRevision, StoreUnavailable, Superseded
from starforge.domain.job import Job, JobState
from starforge.domain.logs import DRIVER, LogSource
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.news import News, Reading, changed_pods, gather, heed, kubernetes_entry, pod_entries
from starforge.domain.observation import PodView, RunPhase, RunSeen, Seen
from starforge.domain.pending import holds
from starforge.domain.ports import Ports, Resume
from starforge.domain.second_looks import SecondLooks
from starforge.domain.settled import SEEN_EVERY, Settled
from starforge.domain.strays import came_late
from starforge.domain.teardown import TeardownState
from starforge.domain.telling import aspects, write
from starforge.domain.timeline import CommandKind
from starforge.domain.verdict import hold, judge

_log = logging.getLogger(__name__)
PROGRESS_EVERY = timedelta(seconds=1)


@dataclass(frozen=True)
class _Known:
    """What is stored of the runs of a batch."""

    jobs: Mapping[JobId, Job]
    pods: Mapping[RunKey, Sequence[PodView]]
    sources: Mapping[RunKey, Sequence[LogSource]]


@dataclass
class Observer:
    """One for each time that a process watches; its memory only spares work and spaces out what is told.

    All is written as what `watcher` has observed: Superseded once somebody else observes the fleet, who may have read
    the same lines.
    """

    ports: Ports
    watcher: Watcher | None = None
    _told: dict[RunKey, datetime] = field(default_factory=dict)
    _untold: set[RunKey] = field(default_factory=set)
    _settled: Settled = field(default_factory=Settled)
    _looks: SecondLooks = field(default_factory=SecondLooks)

    def observe(self, batch: Sequence[Seen]) -> None:
        """Write what a batch means; together if nobody interferes, else run by run. Superseded, StoreUnavailable."""
        at = self.ports.now()
        self._looks.hear(batch)
        news = [one for one in gather(batch) if not self._settled.covers(one, at)]
        if not news:
            return
        try:
            self._write(news)
        except (StoreUnavailable, Superseded):
            raise
        except Exception as failed:  # noqa: BLE001  it is told, and taken in run by run
            if not isinstance(failed, StaleRevision):
                _log.exception("a batch of %d runs could not be taken in; they are taken one by one", len(news))
            for one in news:
                self._write_or_skip(one)

    def tick(self) -> None:
        """Judge what waits by the time that has passed, and tell the progress that came too soon after the last."""
        now = self.ports.now()
        for seen in self._looks.due(now):
            self._write_or_skip(News(seen.run, [seen]))
        for run in [run for run in self._untold if now - self._told[run] >= PROGRESS_EVERY]:
            self._untold.discard(run)
            self._told[run] = now
            job = self.ports.store.job(run.job)
            if job and job.run == run and not job.decided:
                changes = Changes(watcher=self.watcher)
                changes.job(job, Aspect.PROGRESS)
                self._quietly(changes)

    def _quietly(self, changes: Changes) -> None:
        try:
            apply(self.ports, changes)
        except StaleRevision:
            return  # whoever changed the job told of it

    def resume(self, run: RunKey, source: str) -> Resume:
        """Where to go on with a stream of a run."""
        known = {one.key: one for one in self.ports.store.log_sources([run]).get(run, ())}
        found = known.get(source)
        return Resume(found.cursor, found.is_over) if found else Resume(None)

    def _write_or_skip(self, one: News) -> None:
        """One run that makes trouble must not blind us to the others."""
        try:
            self._write_alone(one)
        except (StoreUnavailable, Superseded):
            raise
        except Exception:  # noqa: BLE001  it is told
            _log.exception("what was seen of %s could not be taken in and is lost", one.run)

    def _write_alone(self, one: News) -> None:
        for _ in range(GUARD_TRIES):
            try:
                return self._write([one])
            except StaleRevision:
                continue
        raise StaleRevision(f"{one.run} was changed by others {GUARD_TRIES} times while it was observed.")

    def _write(self, news: Sequence[News]) -> None:
        known = self._load([one.run for one in news])
        changes = Changes()
        after: list[Job | None] = []
        for one in news:
            job = known.jobs.get(one.run.job)
            ours = job is not None and job.run == one.run and not job.ended
            after.append(self._one(changes, one, job, known) if job and ours else None)
            if one.newest and job and came_late(one.newest, job):
                changes.commands.append(self._removal(one.run))
        if not changes.empty:
            changes.watcher = self.watcher
            apply(self.ports, changes)
        for one, job in zip(news, after, strict=True):
            self._settled.note(one, job, self.ports.now())
            self._looks.note(one, job, self.ports.now())

    def _removal(self, run: RunKey) -> NewCommand:
        """What the sweep would do in its next turn, at once: the code of a run that came late may be running."""
        return NewCommand(CommandId(f"command-{self.ports.random()}"), CommandKind.TEARDOWN, run, self.ports.now())

    def _load(self, runs: Sequence[RunKey]) -> _Known:
        store = self.ports.store
        jobs = store.jobs_by_id([run.job for run in runs])
        return _Known(jobs, store.pods(runs), store.log_sources(runs))

    def _one(self, changes: Changes, news: News, before: Job, known: _Known) -> Job:
        """Adds what the news of a run means to the changes; the job as it is after them."""
        at = self.ports.now()
        reading = Reading({one.key: one for one in known.sources.get(news.run, ())}, _trusted(before))
        job, also = self._logs(changes, news, before, reading, at), set[Aspect]()
        changes.extend(kubernetes_entry(event) for event in news.events)
        pods = known.pods.get(news.run, ())
        if news.newest:
            also |= self._pods(changes, news.newest, pods, at)
        job = _judged(job, news, pods, at)
        if reading.touched:
            also |= self._opened(reading, known.sources.get(news.run, ()))
        self._tell(changes, before, job, also, at)
        self._follow_up(changes, before, job, news.newest, reading)
        return job

    def _logs(self, changes: Changes, news: News, job: Job, reading: Reading, at: datetime) -> Job:
        reading.read(news.logs if _takes_lines(job) else (), at)
        job, points = heed(job, reading.messages, at)
        if job.attempt.exited_at:
            reading.close(DRIVER, at)
        changes.metrics += [(news.run, point) for point in points]
        for key in sorted(reading.touched):
            changes.logs.append(LogWrite(reading.sources[key], tuple(reading.lines.get(key, ()))))
        return job

    def _pods(self, changes: Changes, seen: RunSeen, known: Sequence[PodView], at: datetime) -> set[Aspect]:
        pairs = changed_pods(known, seen)
        changes.pods += [(seen.run, pod) for _, pod in pairs]
        changes.extend(pod_entries(seen.run, pairs, at, self.ports.random))
        return {Aspect.PODS} if pairs else set()

    def _opened(self, reading: Reading, before: Sequence[LogSource]) -> set[Aspect]:
        states = {source.key: source.state for source in before}
        changed = any(reading.sources[key].state is not states.get(key) for key in reading.touched)
        return {Aspect.LOGS} if changed else set()

    def _tell(self, changes: Changes, before: Job, after: Job, also: set[Aspect], at: datetime) -> None:
        told = aspects(before, after) | also
        if not told and not _newsworthy(before, after):
            return
        last = self._told.get(after.run)
        if told == {Aspect.PROGRESS} and last and at - last < PROGRESS_EVERY:
            self._untold.add(after.run)
            changes.job(replace(after, updated_at=max(at, after.updated_at)))
            return
        if Aspect.PROGRESS in told:
            self._told[after.run] = at
            self._untold.discard(after.run)
        write(changes, before, after, at, self.ports.random, *also)

    def _follow_up(self, changes: Changes, before: Job, job: Job, seen: RunSeen | None, reading: Reading) -> None:
        driver_closed = DRIVER in reading.touched and reading.sources[DRIVER].is_over
        if job.state is JobState.FINISHING and (not before.decided or driver_closed):
            changes.commands.append(command(self.ports, CommandKind.ARCHIVE, job))
        if seen and seen.phase is RunPhase.ABSENT and not seen.pods and _deleting(job):
            changes.commands.append(command(self.ports, CommandKind.TEARDOWN, job))
        if job.decided:
            self._told.pop(job.run, None)
            self._untold.discard(job.run)


def _newsworthy(before: Job, after: Job) -> bool:
    """Whether a picture in which nothing changed is worth a write: to say when it was seen, but not each time."""
    old, new = before.attempt, after.attempt
    seen_at = new.rayjob.observed_at if new.rayjob else None
    rayjob = old.rayjob and replace(old.rayjob, observed_at=seen_at)
    if replace(old, observed_at=new.observed_at, rayjob=rayjob) != new:
        return True
    return old.observed_at is None or (new.observed_at or old.observed_at) - old.observed_at >= SEEN_EVERY / 2


def _judged(job: Job, news: News, known: Sequence[PodView], at: datetime) -> Job:
    """The job after every picture in turn, so that no state is missed that came and went within a batch."""
    for seen in news.pictures[:-1]:
        job, known = judge(job, seen, None, at, known), (*seen.pods, *(pod for pod in known if pod.gone_at))
    waits = job.state in (JobState.LAUNCHING, JobState.PENDING)
    waits_for = holds(job, news.newest, known, news.events, at) if waits else None
    if news.newest:
        return judge(job, news.newest, waits_for, at, known)
    return hold(job, waits_for) if news.events else corrected(job, at)


def _takes_lines(job: Job) -> bool:
    """Whether its logs are open still: once they are being stored, what comes late would not be in the archive."""
    teardown = job.attempt.teardown
    return teardown is None or teardown.state is TeardownState.AWAITING_ARCHIVE


def _deleting(job: Job) -> bool:
    teardown = job.attempt.teardown
    return teardown is not None and teardown.state in (TeardownState.DELETING, TeardownState.BLOCKED)


def _trusted(job: Job) -> Callable[[str], bool]:
    hashes = frozenset(job.attempt.nonce_hashes)
    return lambda nonce: nonce_hash(nonce) in hashes
