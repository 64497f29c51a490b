"""Notes on every live job whether its fleet can be heard; nothing else is decided on silence."""

from dataclasses import replace
from datetime import datetime

from starforge.domain.actions.apply import guarded
from starforge.domain.changes import Changes
from starforge.domain.job import Job
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.telling import write
from starforge.domain.timeline import Entry, FleetChanged, Severity

_PAGE = 100


def hear(ports: Ports, problem: str | None, *, tell: bool) -> None:
    """Mark what is live as stale because of `problem`, or as heard again if that is None; `tell` adds an event."""
    at = ports.now()
    if tell:
        _announce(ports, problem, at)
    after = None
    while True:
        which = JobFilter(active=True, fleets=(ports.fleet.name,))
        page = ports.store.job_page(which, JobOrder(descending=False), Window(_PAGE, after=after))
        for _, job in page.rows:
            if _differs(job, problem):
                guarded(ports, job.id, lambda found: _marked(ports, found, problem, at))
        if not page.has_next:
            return
        after = page.rows[-1][0]


def _differs(job: Job, problem: str | None) -> bool:
    live = job.attempt.launched_at is not None and not job.ended
    return live and (job.attempt.stale_since is None) != (problem is None)


def _marked(ports: Ports, job: Job, problem: str | None, at: datetime) -> Changes | None:
    if not _differs(job, problem):
        return None
    changes = Changes()
    since = at if problem else None
    after = job.with_attempt(replace(job.attempt, stale_since=since, stale_problem=problem))
    write(changes, job, after, at, ports.random)
    return changes


def _announce(ports: Ports, problem: str | None, at: datetime) -> None:
    name = ports.fleet.name
    message = f"Fleet {name} can't be asked: {problem}" if problem else f"Fleet {name} can be asked again."
    severity = Severity.ERROR if problem else Severity.INFO
    entry = Entry(f"event-{ports.random()}", None, severity, message, at, at, FleetChanged(problem), fleet=name)
    rows = ports.store.commit(Changes(entries=[entry]), at=at)
    ports.publish(rows)
