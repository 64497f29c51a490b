"""Keeps the logs of an attempt: closes them, stores them as objects with a manifest, reads them back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from starforge.domain.actions.apply import apply, command, guarded, load
from starforge.domain.actions.launch import claim_key
from starforge.domain.actions.log_objects import keep, manifest_key, manifest_of, store
from starforge.domain.changes import Aspect, Changes, Lease, LogWrite, Retry
from starforge.domain.errors import ObjectStoreUnavailable
from starforge.domain.job import Job, JobState, LogArchive, end
from starforge.domain.log_waits import Awaited, awaited, left_open
from starforge.domain.logs import DRIVER, LogGap, LogKind, LogSource, LogState, checksum
from starforge.domain.news import Reading, with_gap
from starforge.domain.observation import PodView
from starforge.domain.ports import Ports
from starforge.domain.reason import ReasonCode, keep_since, reason
from starforge.domain.teardown import TeardownState
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind, Entry, LogChanged, Severity

_GONE = "The Pod was gone before its log was read to its end."


def archive(ports: Ports, lease: Lease) -> None:
    """ARCHIVE: close every log as soon as the driver's is whole, let the cluster go, then store and verify the logs."""
    job = load(ports, lease.command.run.job)
    if job.state is not JobState.FINISHING or job.run != lease.command.run or job.attempt.logs_archived_at:
        return apply(ports, Changes(done=True), lease)
    sources = ports.store.log_sources([job.run]).get(job.run, ())
    ran = _may_have_run(ports, job, sources)
    waits = awaited(job, sources, _pods(ports, job), ports.now(), ran=ran)
    if waits:
        _tell(ports, job, waits)
        return apply(ports, Changes(retry=Retry(ports.now() + waits.pause)), lease)
    stored = [store(ports, source) for source in _close(ports, job, ran=ran)]
    manifest = manifest_of(job.run, stored)
    keep(ports, manifest_key(job.run), manifest)
    _finish(ports, job, stored, checksum([manifest]), lease)


def _pods(ports: Ports, job: Job) -> Sequence[PodView]:
    return ports.store.pods([job.run]).get(job.run, ())


def _tell(ports: Ports, job: Job, waits: Awaited) -> None:
    """What a wait that may take long is for."""

    def decide(found: Job) -> Changes | None:
        before = found.attempt.teardown
        if found.run != job.run or before is None or before.state is not TeardownState.AWAITING_ARCHIVE:
            return None
        why = keep_since(waits.reason, before.reason) if waits.reason else None
        if why == before.reason:
            return None
        changes = Changes()
        after = found.with_attempt(replace(found.attempt, teardown=replace(before, reason=why)))
        write(changes, found, after, ports.now(), ports.random)
        return changes

    guarded(ports, job.id, decide)


def _may_have_run(ports: Ports, job: Job, sources: Sequence[LogSource]) -> bool:
    """Whether the command may have been started: Ray calls a job RUNNING before our runner has claimed the attempt."""
    known = any(source.key == DRIVER for source in sources)
    if job.attempt.started_at is None or job.attempt.exited_at or known:
        return job.attempt.started_at is not None
    try:
        return ports.objects.size(claim_key(job.run)) is not None
    except ObjectStoreUnavailable:
        return True


def _close(ports: Ports, job: Job, *, ran: bool) -> list[LogSource]:
    """Close what is open and ask for the cluster's removal: every line is kept in rows by now."""

    def decide(found: Job) -> Changes | None:
        at, teardown = ports.now(), found.attempt.teardown
        if found.run != job.run or teardown is None or teardown.state is not TeardownState.AWAITING_ARCHIVE:
            return None
        sources = ports.store.log_sources([job.run]).get(job.run, ())
        missing = dict.fromkeys(left_open(sources, _pods(ports, job)), _GONE)
        missing |= {source.key: _interrupted(source.problem) for source in sources if source.problem}
        closings = _closings(sources, found, at, ran=ran, missing=missing)
        changes = Changes(logs=closings, commands=[command(ports, CommandKind.TEARDOWN, found)])
        deleting = replace(teardown, state=TeardownState.DELETING, reason=None)
        after = found.with_attempt(replace(found.attempt, teardown=deleting))
        write(changes, found, after, at, ports.random, Aspect.LOGS)
        return changes

    guarded(ports, job.id, decide)
    return list(ports.store.log_sources([job.run]).get(job.run, ()))


def _interrupted(problem: str) -> str:
    return f"The log could not be read to its end: {problem}."


def _closings(
    sources: Sequence[LogSource], job: Job, at: datetime, *, ran: bool, missing: Mapping[str, str]
) -> list[LogWrite]:
    """Every open log closed, the driver's last, as it gets what the others hold of its unfinished line.

    `missing` says by key why the end of a log could not be had.
    """
    reading = Reading({source.key: source for source in sources}, trusts=lambda nonce: False)
    for source in sources:
        if source.key != DRIVER:
            reading.close(source.key, at, missing=missing.get(source.key))
    if ran:
        reading.sources.setdefault(DRIVER, LogSource(job.run, DRIVER, LogKind.DRIVER))
    reading.close(DRIVER, at)
    if DRIVER in reading.touched and not job.attempt.exited_at:
        reading.sources[DRIVER] = _truncated(reading.sources[DRIVER])
    return [LogWrite(reading.sources[key], tuple(reading.lines.get(key, ()))) for key in sorted(reading.touched)]


def _truncated(source: LogSource) -> LogSource:
    gap = LogGap(source.lines, "The end of the log could not be had: the head's log ended before the command's did.")
    return replace(with_gap(source, gap), state=LogState.TRUNCATED)


def _finish(ports: Ports, job: Job, sources: list[LogSource], sha256: str, lease: Lease) -> None:
    def decide(found: Job) -> Changes | None:
        if found.run != job.run or found.attempt.logs_archived_at:
            return None
        at = ports.now()
        changes = Changes(logs=[LogWrite(source) for source in sources])
        kept = _archive(sources, sha256, at)
        after = found.with_attempt(replace(found.attempt, archive=kept, logs_archived_at=at))
        message = f"{kept.lines} lines of {kept.sources} logs are stored and verified."
        entry = Entry(f"event-{ports.random()}", job.run, Severity.INFO, message, at, at, LogChanged())
        changes.entries.append(entry)
        write(changes, found, end(after, at) if after.attempt.released_at else after, at, ports.random, Aspect.LOGS)
        return changes

    guarded(ports, job.id, decide)
    apply(ports, Changes(done=True), lease)


def _archive(sources: list[LogSource], sha256: str, at: datetime) -> LogArchive:
    cut = [source.key for source in sources if source.state is LogState.TRUNCATED]
    code = ReasonCode.HEAD_LOST if DRIVER in cut else ReasonCode.NODE_LOST
    why = reason(code, f"Lines are missing in {', '.join(cut)}.", at) if cut else None
    lines, size = sum(source.lines for source in sources), sum(source.bytes for source in sources)
    return LogArchive(len(sources), lines, size, sha256, at, why)
