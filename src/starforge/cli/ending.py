"""Ends what runs on this machine before `starforge dev` goes, so that no process and no Ray session is left."""

import time

from starforge.adapters.settings import Settings
from starforge.adapters.wiring import build
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.errors import StarForgeError
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
    for job in _holding(ports):
        try:
            cancel(ports, job.id, Wish(PLATFORM, NOTE, GRACE_S))
        except StarForgeError as refused:
            raise RuntimeError(f"Job {job.id} could not be ended: {refused}") from refused
    until = time.monotonic() + PATIENCE_S
    while left := _holding(ports):
        if time.monotonic() > until:
            raise RuntimeError(f"Not ended within {PATIENCE_S:.0f} s: {', '.join(job.id for job in left)}.")
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
