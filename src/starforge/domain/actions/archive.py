"""Keeps the logs of an attempt: closes them, stores them as objects with a manifest, reads them back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import apply, command, guarded, load
from starforge.domain.actions.launch import claim_key
from starforge.domain.actions.log_rows import row_pages
from starforge.domain.changes import Aspect, Changes, Lease, LogWrite, Retry
from starforge.domain.errors import ObjectStoreUnavailable
from starforge.domain.job import Job, JobState, LogArchive, end
from starforge.domain.jobspec import canonical
from starforge.domain.logs import DRIVER, LogGap, LogKind, LogSource, LogState, checksum, text_of
from starforge.domain.names import RunKey
from starforge.domain.news import Reading, with_gap
from starforge.domain.ports import Ports
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.teardown import TeardownState
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind, Entry, LogChanged, Severity

DRIVER_PATIENCE = timedelta(seconds=20)
SETTLES = timedelta(seconds=2)
_GONE = "The Pod was gone before its log was read to its end."


def archive(ports: Ports, lease: Lease) -> None:
    """ARCHIVE: close every log as soon as the driver's is whole, let the cluster go, then store and verify the logs."""
    job = load(ports, lease.command.run.job)
    if job.state is not JobState.FINISHING or job.run != lease.command.run or job.attempt.logs_archived_at:
        return apply(ports, Changes(done=True), lease)
    sources = ports.store.log_sources([job.run]).get(job.run, ())
    driver = _driver_of(sources)
    ran = _may_have_run(ports, job, driver)
    if _lines_are_awaited(job, driver, ports.now(), ran=ran) or _ends_are_awaited(ports, sources):
        return apply(ports, Changes(retry=Retry(ports.now() + timedelta(seconds=1))), lease)
    stored = [_store(ports, source) for source in _close(ports, job, ran=ran)]
    manifest = _manifest(job.run, stored)
    _keep(ports, manifest_key(job.run), manifest)
    _finish(ports, job, stored, checksum([manifest]), lease)


def source_key(run: RunKey, source: str) -> str:
    """Object that holds the whole text of one log."""
    return f"logs/{run.job}/{run.attempt}/{source}.log"


def manifest_key(run: RunKey) -> str:
    """Object that lists every log of an attempt with lines, bytes and sha256."""
    return f"logs/{run.job}/{run.attempt}/manifest.json"


def _lines_are_awaited(job: Job, driver: LogSource | None, now: datetime, *, ran: bool) -> bool:
    attempt = job.attempt
    since = attempt.finished_at or now
    if attempt.launched_at and not ran:
        return now < since + SETTLES  # the containers' last words are on their way
    if not ran or attempt.exited_at or (driver and driver.is_over):
        return False
    # Lines that still come are waited for, and so is an observer that could read them.
    news = [at for at in (since, attempt.heard_again_at, driver and driver.read_at) if at]
    return attempt.stale_since is not None or now < max(news) + DRIVER_PATIENCE


def _left_open(ports: Ports, sources: Sequence[LogSource]) -> dict[str, datetime]:
    """Logs that were not read to their end though their Pod is gone, by key, and since when it is."""
    runs = {source.run for source in sources}
    gone = {pod.name: pod.gone_at for pods in ports.store.pods(list(runs)).values() for pod in pods if pod.gone_at}
    return {source.key: gone[source.pod] for source in sources if not source.is_over and source.pod in gone}


def _ends_are_awaited(ports: Ports, sources: Sequence[LogSource]) -> bool:
    """Whether what is in the pipe of a Pod that went may still come."""
    return any(ports.now() < since + DRIVER_PATIENCE for since in _left_open(ports, sources).values())


def _may_have_run(ports: Ports, job: Job, driver: LogSource | None) -> bool:
    """Whether the command may have been started: Ray calls a job RUNNING before our runner has claimed the attempt."""
    if job.attempt.started_at is None or job.attempt.exited_at or driver:
        return job.attempt.started_at is not None
    try:
        return ports.objects.size(claim_key(job.run)) is not None
    except ObjectStoreUnavailable:
        return True


def _driver_of(sources: Sequence[LogSource]) -> LogSource | None:
    return next((source for source in sources if source.key == DRIVER), None)


def _close(ports: Ports, job: Job, *, ran: bool) -> list[LogSource]:
    """Close what is open and ask for the cluster's removal: every line is kept in rows by now."""

    def decide(found: Job) -> Changes | None:
        at, teardown = ports.now(), found.attempt.teardown
        if found.run != job.run or teardown is None or teardown.state is not TeardownState.AWAITING_ARCHIVE:
            return None
        sources = ports.store.log_sources([job.run]).get(job.run, ())
        missing = dict.fromkeys(_left_open(ports, sources), _GONE)
        missing |= {source.key: _interrupted(source.problem) for source in sources if source.problem}
        closings = _closings(sources, found, at, ran=ran, missing=missing)
        changes = Changes(logs=closings, commands=[command(ports, CommandKind.TEARDOWN, found)])
        deleting = replace(teardown, state=TeardownState.DELETING)
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


def _store(ports: Ports, source: LogSource) -> LogSource:
    key = source_key(source.run, source.key)
    with ports.scratch() as scratch:
        path = scratch / "log"
        with path.open("wb") as file:
            for page in row_pages(ports.store, source):
                file.write(text_of(page))
        with path.open("rb") as file:
            sha256 = checksum(iter(lambda: file.read(1 << 20), b""))
        ports.objects.put(key, path)
        back = scratch / "back"
        ports.objects.fetch(key, back)
        with back.open("rb") as file:
            if checksum(iter(lambda: file.read(1 << 20), b"")) != sha256:
                raise OSError(f"{key} reads back otherwise than it was written")
    return replace(source, sha256=sha256, object_key=key)


def _manifest(run: RunKey, sources: list[LogSource]) -> bytes:
    rows = [
        {
            "source": source.key,
            "object": source.object_key,
            "lines": source.lines,
            "bytes": source.bytes,
            "sha256": source.sha256,
            "state": source.state,
            "gaps": [{"after": gap.after_line, "message": gap.message, "lines": gap.lines} for gap in source.gaps],
        }
        for source in sorted(sources, key=lambda source: source.key)
    ]
    return canonical({"job": run.job, "attempt": run.attempt, "logs": rows})


def _keep(ports: Ports, key: str, content: bytes) -> None:
    ports.objects.put(key, content)
    if ports.objects.read(key) != content:
        raise OSError(f"{key} reads back otherwise than it was written")


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
