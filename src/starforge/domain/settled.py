"""Which pictures need not be taken in: a run that goes on as it did means nothing new. Pure."""

import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from starforge.domain.job import Attempt, Job, JobState
from starforge.domain.names import RunKey
from starforge.domain.news import News
from starforge.domain.observation import RunPhase, RunSeen

SEEN_EVERY = timedelta(minutes=5)
"""How old the time of the last picture may become while nothing changes."""


SEEN_BY_NOW = SEEN_EVERY + timedelta(minutes=1)
"""A run whose last picture is older than this is not seen any more, however well the fleet is heard."""


def confirmed_at(attempt: Attempt, heard_at: datetime | None) -> datetime | None:
    """When it was last known that an attempt is as it is stored; `heard_at` is when its whole fleet was heard last.

    What is seen of a run and is nothing new is not stored each time: while the fleet is heard, it is as it was.
    """
    seen = attempt.observed_at
    if seen is None or heard_at is None or attempt.stale_since or attempt.released_at:
        return seen
    return heard_at if seen < heard_at <= seen + SEEN_BY_NOW else seen


@dataclass
class Settled:
    """The last picture of each run that goes on as it did, and until when it is not looked at again."""

    _last: dict[RunKey, tuple[RunSeen, datetime]] = field(default_factory=dict)

    def covers(self, news: News, at: datetime) -> bool:
        """Whether all of it is the picture that was taken in last."""
        known = self._last.get(news.run)
        if known is None or news.events or news.logs or at >= known[1]:
            return False
        return all(same_picture(known[0], seen) for seen in news.pictures)

    def note(self, news: News, job: Job | None, at: datetime) -> None:
        """What was taken in: `job` is what it belongs to after it, None if that has ended or is none of ours."""
        seen = news.newest
        if seen is None:
            return
        if job is None or (job.state is JobState.RUNNING and _goes_well(seen)):
            self._last[news.run] = (seen, at + SEEN_EVERY * _share(news.run))
        else:
            self._last.pop(news.run, None)  # what holds or ends it is judged by the time as well
        if seen.phase is RunPhase.ABSENT and not seen.pods:
            self._last.pop(news.run, None)


def _goes_well(seen: RunSeen) -> bool:
    """Whether time alone can change nothing about what it means."""
    return seen.phase is RunPhase.RUNNING and all(pod.ready and not pod.terminating for pod in seen.pods)


def same_picture(old: RunSeen, new: RunSeen) -> bool:
    """Whether two pictures differ in nothing but when they were made."""
    if len(old.pods) != len(new.pods) or replace(_undated(new), pods=old.pods) != _undated(old):
        return False
    return all(
        one is other or replace(other, observed_at=one.observed_at) == one
        for one, other in zip(old.pods, new.pods, strict=True)
    )


def _undated(seen: RunSeen) -> RunSeen:
    return replace(seen, at=datetime.min, rayjob=seen.rayjob and replace(seen.rayjob, observed_at=None))


def _share(run: RunKey) -> float:
    """Between a half and one, another for each run, so that runs that were seen at once are not due at once."""
    return 0.5 + zlib.crc32(f"{run.job}/{run.attempt}".encode()) / 2**33
