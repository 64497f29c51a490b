"""Keeps a simulated fleet busy, so that there is something to build a dashboard on."""

import heapq
import logging
import threading
from datetime import datetime, timedelta

from starforge.adapters.simulated.busy import BusyJob, submissions
from starforge.adapters.wiring import Parts
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.submit import submit
from starforge.domain.errors import Outside, StarForgeError, UserMistake
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import JobId

ACTOR = Actor("busy", ActorKind.PLATFORM)
_log = logging.getLogger(__name__)


def keep_busy(parts: Parts, jobs: int, stop: threading.Event) -> None:
    """Submit, and now and then cancel, so that about `jobs` jobs are alive, until `stop` is set."""
    cancels: list[tuple[datetime, JobId]] = []
    due = parts.ports.now()
    for number, planned in enumerate(submissions(jobs, parts.settings.simulate_seed)):
        # The first ones come spread over the seconds of one life of a job, so that their states are mixed.
        due += timedelta(seconds=planned.after_s if number >= jobs else min(0.2, 60 / jobs))
        while not stop.is_set() and (wait := _until(parts, min([due, *(at for at, _ in cancels[:1])]))) > 0:
            stop.wait(wait)
            _cancel_due(parts, cancels)
        if stop.is_set():
            return
        _submit(parts, planned, cancels)


def _until(parts: Parts, at: datetime) -> float:
    return (at - parts.ports.now()).total_seconds()


def _submit(parts: Parts, planned: BusyJob, cancels: list[tuple[datetime, JobId]]) -> None:
    try:
        job = submit(parts.ports, planned.submission, ACTOR).job
    except (UserMistake, Outside) as refused:
        _log.warning("a busy job was not submitted: %s", refused)
        return
    if planned.cancel_after_s is not None:
        at = parts.ports.now() + timedelta(seconds=planned.cancel_after_s)
        heapq.heappush(cancels, (at, job.id))


def _cancel_due(parts: Parts, cancels: list[tuple[datetime, JobId]]) -> None:
    while cancels and cancels[0][0] <= parts.ports.now():
        _, job = heapq.heappop(cancels)
        try:
            cancel(parts.ports, job, Wish(ACTOR, "changed my mind"))
        except StarForgeError as refused:
            _log.warning("job %s was not canceled: %s", job, refused)
