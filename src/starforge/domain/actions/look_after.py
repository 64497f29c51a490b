"""Asks about live runs that the watch does not mention: one that was deleted while nobody watched leaves no trace."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice

from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.job import JobState
from starforge.domain.names import RunKey
from starforge.domain.observation import RunSeen
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window

SILENT = timedelta(seconds=60)
_STATES = (JobState.PENDING, JobState.RUNNING, JobState.FINISHING)
LOOKS_MAX = 20
_PAGE = 100


def look_after(ports: Ports, mentioned: frozenset[RunKey]) -> Sequence[RunSeen]:
    """How the runs are that were launched a while ago and are not among those mentioned; nothing if nobody can say."""
    found: list[RunSeen] = []
    for run in islice(_silent(ports, mentioned), LOOKS_MAX):
        try:
            found.append(ports.fleet.look(run))
        except (FleetUnavailable, FleetRefused):
            break  # the watch tells what is wrong, and the next round asks again
    return found


def _silent(ports: Ports, mentioned: frozenset[RunKey]) -> Iterator[RunKey]:
    after, before = None, ports.now() - SILENT
    which = JobFilter(states=_STATES, fleets=(ports.fleet.name,))
    while True:
        page = ports.store.job_page(which, JobOrder(), Window(_PAGE, after=after))
        for _, job in page.rows:
            launched = job.attempt.launched_at
            if launched and launched < before and job.run not in mentioned:
                yield job.run
        if not page.has_next:
            return
        after = page.rows[-1][0]
