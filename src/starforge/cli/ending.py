"""Ends what runs on this machine before `starforge dev` goes, so that no process and no Ray session is left."""

import time

from starforge.adapters.settings import Settings
from starforge.adapters.wiring import build
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.job import PLATFORM, Job, JobState
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window

GRACE_S = 5
PATIENCE_S = 60.0
HELD = (JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING, JobState.FINISHING)
NOTE = "starforge dev was stopped"


def end_runs(settings: Settings) -> None:
    """Cancel every job that holds something of this machine and wait until all of it is released."""
    parts = build(settings)
    try:
        _end(parts.ports)
    finally:
        parts.close()


def _end(ports: Ports) -> None:
    until = time.monotonic() + PATIENCE_S
    while left := _holding(ports):
        if time.monotonic() > until:
            return _remove(ports, left)
        for job in left:
            cancel(ports, job.id, Wish(PLATFORM, NOTE, GRACE_S))  # again for one that was launched meanwhile
        time.sleep(0.2)


def remove_runs(settings: Settings) -> None:
    """Remove what runs, with no worker to do it; the jobs learn of it when StarForge is started again."""
    parts = build(settings)
    try:
        _remove(parts.ports, _holding(parts.ports))
    finally:
        parts.close()


def _remove(ports: Ports, jobs: list[Job]) -> None:
    for job in jobs:
        ports.fleet.delete(job.run)
    until = time.monotonic() + PATIENCE_S
    while left := [job.id for job in jobs if ports.fleet.remaining(job.run)]:
        if time.monotonic() > until:
            raise RuntimeError(f"Not ended within {PATIENCE_S:.0f} s: {', '.join(left)}.")
        time.sleep(0.2)


def _holding(ports: Ports) -> list[Job]:
    found, after = list[Job](), None
    which = JobFilter(states=HELD, fleets=(ports.fleet.name,))
    while True:
        page = ports.store.job_page(which, JobOrder(), Window(100, after=after))
        found += [job for _, job in page.rows]
        if not page.has_next:
            return found
        after = page.rows[-1][0]
