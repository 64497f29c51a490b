"""What the archive of an attempt waits for, so that no line is missing that can still be had."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from starforge.domain.job import Job
from starforge.domain.logs import DRIVER, LogSource
from starforge.domain.observation import PodView
from starforge.domain.reason import Evidence, EvidenceSource, Reason, reason
from starforge.domain.silent_nodes import silence, unanswered
from starforge.domain.teardown import HOLDS_TEARDOWN

DRIVER_PATIENCE = timedelta(seconds=20)
SETTLES = timedelta(seconds=2)
UNREADABLE_PATIENCE = timedelta(minutes=10)
"""From the end of the run on, for logs that can't be read: longer than Kubernetes waits by itself for a silent node."""
_LOOK, _SELDOM = timedelta(seconds=1), timedelta(seconds=5)
_ADVICE = "Nothing has to be done if it can be read again; until {until:%H:%M:%S} UTC the cluster is kept for it."


@dataclass(frozen=True)
class Awaited:
    """That the archive waits, for how long until the next look, and for a wait that takes longer the reason."""

    pause: timedelta
    reason: Reason | None = None


def awaited(
    job: Job, sources: Sequence[LogSource], pods: Sequence[PodView], now: datetime, *, ran: bool
) -> Awaited | None:
    """What the logs of a run that is over wait for; None once they can be closed. `ran`: its command may have run."""
    why = _unreadable(job, sources, pods, now)
    if why:
        return Awaited(_SELDOM, why)
    driver = next((source for source in sources if source.key == DRIVER), None)
    ends = any(now < since + DRIVER_PATIENCE for since in left_open(sources, pods).values())
    return Awaited(_LOOK) if ends or _lines_come(job, driver, now, ran=ran) else None


def left_open(sources: Sequence[LogSource], pods: Sequence[PodView]) -> dict[str, datetime]:
    """Logs that were not read to their end though their Pod is gone, by key, and since when it is."""
    gone = {pod.name: pod.gone_at for pod in pods if pod.gone_at}
    return {source.key: gone[source.pod] for source in sources if not source.is_over and source.pod in gone}


def _lines_come(job: Job, driver: LogSource | None, now: datetime, *, ran: bool) -> bool:
    attempt = job.attempt
    since = attempt.finished_at or now
    if attempt.launched_at and not ran:
        return now < since + SETTLES  # the containers' last words are on their way
    if not ran or attempt.exited_at or (driver and driver.is_over):
        return False
    # Lines that still come are waited for, and so is an observer that could read them.
    news = [at for at in (since, attempt.heard_again_at, driver and driver.read_at) if at]
    return attempt.stale_since is not None or now < max(news) + DRIVER_PATIENCE


def _unreadable(job: Job, sources: Sequence[LogSource], pods: Sequence[PodView], now: datetime) -> Reason | None:
    """Why lines that are there can't be had for now; a node that Kubernetes gave up is not waited for."""
    until = (job.attempt.finished_at or now) + UNREADABLE_PATIENCE
    there = {pod.name: pod for pod in pods if not pod.gone_at and not pod.terminating}
    unread = [source for source in sources if not source.is_over and source.pod in there]
    found = next(chain(_silent(unread, there, now), _interrupted(unread, now)), None)
    if found is None or now >= until:
        return None
    what, evidence = found
    message = f"The logs are not whole yet. {what}"
    return reason(HOLDS_TEARDOWN, message, now, advice=_ADVICE.format(until=until), evidence=(evidence,))


def _silent(unread: Iterable[LogSource], there: Mapping[str, PodView], now: datetime) -> Iterator[tuple[str, Evidence]]:
    for name in sorted({source.pod for source in unread if source.pod}):
        what = unanswered(there[name])
        if what:
            yield what, silence(there[name], now)


def _interrupted(unread: Iterable[LogSource], now: datetime) -> Iterator[tuple[str, Evidence]]:
    for source in unread:
        if source.problem:
            what = f"Container {source.container} of Pod {source.pod} can't be read: {source.problem}."
            yield what, Evidence(EvidenceSource.LOG, source.problem, now, path=source.key)
