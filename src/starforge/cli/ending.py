"""Ends what runs on this machine before `starforge dev` goes, so that no process and no Ray session is left."""

import time
from collections.abc import Iterator, Sequence

from starforge.adapters.settings import Settings
from starforge.adapters.wiring import build
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.stop_playground import stop_playground
from starforge.domain.job import PLATFORM, Job, JobState
from starforge.domain.playground import Playground
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, PlaygroundFilter, Window

GRACE_S = 5
PATIENCE_S = 60.0
HELD = (JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING, JobState.FINISHING)
NOTE = "starforge dev was stopped"


def end_runs(settings: Settings) -> None:
    """End every job and playground that holds something of this machine, and wait until all of it is released."""
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
        for one in left:  # again for one that was launched meanwhile
            if isinstance(one, Job):
                cancel(ports, one.id, Wish(PLATFORM, NOTE, GRACE_S))
            else:
                stop_playground(ports, one.id, PLATFORM)
        time.sleep(0.2)


def remove_runs(settings: Settings) -> None:
    """Remove what runs, with no worker to do it; the jobs learn of it when StarForge is started again."""
    parts = build(settings)
    try:
        _remove(parts.ports, _holding(parts.ports))
    finally:
        parts.close()


def _remove(ports: Ports, held: Sequence[Job | Playground]) -> None:
    runs = {one.id: one.run if isinstance(one, Job) else one.key for one in held}
    for run in runs.values():
        ports.fleet.delete(run)
    until = time.monotonic() + PATIENCE_S
    while left := [id_ for id_, run in runs.items() if ports.fleet.remaining(run)]:
        if time.monotonic() > until:
            raise RuntimeError(f"Not ended within {PATIENCE_S:.0f} s: {', '.join(left)}.")
        time.sleep(0.2)


def _holding(ports: Ports) -> list[Job | Playground]:
    return [*_jobs(ports), *_playgrounds(ports)]


def _playgrounds(ports: Ports) -> Iterator[Playground]:
    """Those whose server may still be there."""
    after = None
    while True:
        page = ports.store.playground_page(PlaygroundFilter(fleets=(ports.fleet.name,)), Window(100, after=after))
        yield from (one for _, one in page.rows if one.launched_at and not one.released_at)
        if not page.has_next:
            return
        after = page.rows[-1][0]


def _jobs(ports: Ports) -> list[Job]:
    found, after = list[Job](), None
    which = JobFilter(states=HELD, fleets=(ports.fleet.name,))
    while True:
        page = ports.store.job_page(which, JobOrder(), Window(100, after=after))
        found += [job for _, job in page.rows]
        if not page.has_next:
            return found
        after = page.rows[-1][0]
