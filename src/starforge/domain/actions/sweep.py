"""Compares both ways what a fleet has and what the database says: runs that nobody needs, and jobs without a run."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from starforge.domain.actions.observe import Observer
from starforge.domain.actions.remove_stray import is_there, remove, tell_held
from starforge.domain.errors import FleetRefused
from starforge.domain.job import Job, JobState
from starforge.domain.names import JobId, RunKey, installation_id
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.strays import Stray, by_run, stray, superseded
from starforge.domain.teardown import Found

GRACE = timedelta(seconds=120)
APART = timedelta(seconds=60)
SILENT = timedelta(seconds=60)
LOOKS_MAX = 200
_LAUNCHED = (JobState.PENDING, JobState.RUNNING, JobState.FINISHING)
_PAGE = 100
_AT_ONCE = 500
_log = logging.getLogger(__name__)


class Step(StrEnum):
    """What a sweep does: REMOVE a stray, NOTE it, let it be (GOING, HELD), or ASK how a run is that is not listed."""

    REMOVE = "REMOVE"
    NOTE = "NOTE"
    GOING = "GOING"
    HELD = "HELD"
    ASK = "ASK"


@dataclass(frozen=True)
class Finding:
    """A run of which fleet and database differ. `stray` is what is too much; None if what is there is too little."""

    run: RunKey
    what: str
    why: str
    step: Step
    stray: Stray | None = None


def sweep(ports: Ports, *, dry_run: bool = False) -> Sequence[Finding]:
    """Remove strays and have jobs judged whose run is gone; returns what was found, and does only that with `dry_run`.

    A run that the database does not know is removed if it is two minutes old and was a stray in two sweeps; one that
    was released, at once. Nothing is decided on silence: raises what fleet and database raise if they can't be asked.
    """
    at = ports.now()
    installation = ports.store.installation(new=installation_id(ports.random()))
    found = by_run(ports.fleet.ours(installation))
    known = ports.store.strays(ports.fleet.name)
    findings = [_finding(one, known.get(one.run), at) for one in _strays(ports, found, at)]
    findings += map(_without_run, islice(_silent(ports, found, at), LOOKS_MAX))
    if not dry_run:
        doubtful = [one.run for one in findings if one.stray and not one.stray.proven]
        ports.store.note_strays(ports.fleet.name, doubtful, at=at)
        _act(ports, findings)
    return findings


def _strays(ports: Ports, found: Mapping[RunKey, tuple[Found, ...]], at: datetime) -> Iterator[Stray]:
    """Those that are old enough, or are there still although they were released."""
    jobs = _jobs(ports, sorted({run.job for run in found}))
    attempts = ports.store.attempts(superseded(found, jobs))
    for run, objects in found.items():
        one = stray(run, objects, jobs.get(run.job), attempts.get(run.job, ()))
        if one and (is_there(ports, one) if one.proven else at - one.since >= GRACE):
            yield one


def _jobs(ports: Ports, ids: Sequence[JobId]) -> Mapping[JobId, Job]:
    jobs: dict[JobId, Job] = {}
    for start in range(0, len(ids), _AT_ONCE):
        jobs |= ports.store.jobs_by_id(ids[start : start + _AT_ONCE])
    return jobs


def _finding(one: Stray, since: datetime | None, at: datetime) -> Finding:
    held = one.held(at)
    if held:
        return Finding(one.run, one.name, f"{one.why} {held.message}", Step.HELD, one)
    step = Step.GOING if one.terminating else Step.REMOVE
    if step is Step.REMOVE and not one.proven and (since is None or at - since < APART):
        step = Step.NOTE
    return Finding(one.run, one.name, one.why, step, one)


def _silent(ports: Ports, found: Mapping[RunKey, object], at: datetime) -> Iterator[Job]:
    """Live jobs that were launched a while ago and of which nothing is there."""
    after, which = None, JobFilter(states=_LAUNCHED, fleets=(ports.fleet.name,))
    while True:
        page = ports.store.job_page(which, JobOrder(), Window(_PAGE, after=after))
        for _, job in page.rows:
            launched = job.attempt.launched_at
            if launched and launched < at - SILENT and job.run not in found:
                yield job
        if not page.has_next:
            return
        after = page.rows[-1][0]


def _without_run(job: Job) -> Finding:
    name = job.attempt.run.name if job.attempt.run else job.spec.name
    return Finding(job.run, name, f"The job is {job.state}, and nothing of it is there.", Step.ASK)


def _act(ports: Ports, findings: Sequence[Finding]) -> None:
    for one in findings:
        if one.stray and one.step is Step.REMOVE:
            remove(ports, one.stray)
        elif one.stray and one.step is Step.HELD:
            tell_held(ports, one.stray)
    _ask(ports, [one.run for one in findings if one.step is Step.ASK])


def _ask(ports: Ports, runs: Sequence[RunKey]) -> None:
    """Have jobs judged by how their run is right now."""
    try:
        seen = [ports.fleet.look(run) for run in runs]
    except FleetRefused as refused:
        return _log.warning("jobs whose run is not there are not judged: %s", refused)
    Observer(ports).observe(seen)
