"""Notes on every live job whether its fleet can be heard; nothing else is decided on silence."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256

from starforge.domain.actions.apply import apply, guarded
from starforge.domain.changes import Changes
from starforge.domain.deadlines import AWAY, OUTAGE_GRACE, ClockKind, grace
from starforge.domain.errors import StaleRevision
from starforge.domain.job import Job
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.reason import ReasonCode
from starforge.domain.telling import write
from starforge.domain.timeline import Entry, FleetChanged, Severity

_PAGE = 100


@dataclass(frozen=True)
class _Word:
    """What is noted at `at`, and since when it is so; `code` is the kind of the problem."""

    problem: str | None
    code: ReasonCode
    at: datetime
    since: datetime


def _always() -> bool:
    return True


def hear(
    ports: Ports,
    problem: str | None,
    *,
    tell: bool,
    code: ReasonCode = ReasonCode.API_UNAVAILABLE,
    since: datetime | None = None,
    still: Callable[[], bool] = _always,
) -> None:
    """Mark what is live as stale because of `problem`, of the kind `code`, or as heard again if that is None.

    `since` is when it was heard last, now if not given; `tell` adds an event, once for all that has the same `since`.
    That something is heard again is told as well if anything was stale. What is heard again after an outage gets a
    grace before any of its clocks ends it. It stops when `problem` is not `still` so.
    """
    at, after, marked = ports.now(), None, False
    word = _Word(problem, code, at, since or at)
    which = JobFilter(active=True, fleets=(ports.fleet.name,))
    while still():
        page = ports.store.job_page(which, JobOrder(descending=False), Window(_PAGE, after=after))
        differ = [job for _, job in page.rows if _differs(job, word)]
        if differ:
            _mark(ports, differ, word)
        marked = marked or bool(differ)
        if not page.has_next:
            break
        after = page.rows[-1][0]
    if (tell or (marked and problem is None)) and still():
        _announce(ports, problem, at, since)


def _mark(ports: Ports, jobs: Sequence[Job], word: _Word) -> None:
    """All together if nobody interferes, else one by one."""
    changes = Changes()
    for job in jobs:
        _marked(changes, ports, job, word)
    try:
        apply(ports, changes)
    except StaleRevision:
        for job in jobs:
            guarded(ports, job.id, lambda found: _marked(Changes(), ports, found, word))


def _differs(job: Job, word: _Word) -> bool:
    attempt = job.attempt
    if attempt.launched_at is None or job.ended:
        return False
    if attempt.stale_since is None or word.problem is None:
        return (attempt.stale_since is None) != (word.problem is None)
    return attempt.stale_code is not word.code


def _marked(changes: Changes, ports: Ports, job: Job, word: _Word) -> Changes | None:
    """`changes` with what becomes of a job; None if nothing does."""
    if not _differs(job, word):
        return None
    attempt, at = job.attempt, word.at
    if word.problem is None:
        away = at - attempt.stale_since if attempt.stale_since else timedelta()
        clocks = grace(attempt.clocks, list(ClockKind), at + OUTAGE_GRACE) if away >= AWAY else attempt.clocks
        after = replace(attempt, clocks=clocks, stale_since=None, stale_problem=None, heard_again_at=at)
    else:
        since = attempt.stale_since or max(word.since, attempt.launched_at or word.since)
        after = replace(attempt, stale_since=since, stale_problem=word.problem, stale_code=word.code)
    write(changes, job, job.with_attempt(after), at, ports.random)
    return changes


def _announce(ports: Ports, problem: str | None, at: datetime, since: datetime | None) -> None:
    name = ports.fleet.name
    entry_id = f"event-{sha256(f'{name} {since.isoformat()}'.encode()).hexdigest()[:32] if since else ports.random()}"
    if since and ports.store.entries([entry_id]):
        return
    message = f"Fleet {name} can't be asked: {problem}" if problem else f"Fleet {name} can be asked again."
    severity = Severity.ERROR if problem else Severity.INFO
    entry = Entry(entry_id, None, severity, message, since or at, at, FleetChanged(problem), fleet=name)
    rows = ports.store.commit(Changes(entries=[entry]), at=at)
    ports.publish(rows)
