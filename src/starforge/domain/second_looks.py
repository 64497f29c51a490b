"""Runs that are judged again though nothing new was told of them, as time alone may end or explain their waiting."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from starforge.domain.failfast import look_again_at
from starforge.domain.job import Job, JobState
from starforge.domain.names import RunKey
from starforge.domain.news import News
from starforge.domain.observation import FleetHeard, RunSeen, Seen

SEEN_LATELY = timedelta(seconds=45)
"""A watch tells of every run each 30 seconds; what is older than this may have changed."""


@dataclass
class SecondLooks:
    """The last picture of each run that waits, and when it is due to be looked at again."""

    _last: dict[RunKey, RunSeen] = field(default_factory=dict)
    _due: dict[RunKey, datetime] = field(default_factory=dict)
    _problem: str | None = None

    def hear(self, batch: Iterable[Seen]) -> None:
        """Whether the fleet can be asked: while it can't, no picture is true any more."""
        for seen in batch:
            if isinstance(seen, FleetHeard):
                self._problem = seen.problem

    def note(self, news: News, job: Job | None, at: datetime) -> None:
        """What was taken in; `job` is what it belongs to after it, None if that has ended or is none of ours."""
        if job is None or job.state is not JobState.PENDING:
            self._last.pop(news.run, None)
            self._due.pop(news.run, None)
            return
        if news.newest:
            self._last[news.run] = replace(news.newest, gone=())
        when = look_again_at(job)
        if when is not None and (when > at or news.events):
            self._due[news.run] = max(when, at)
        else:
            self._due.pop(news.run, None)

    def due(self, at: datetime) -> list[RunSeen]:
        """The last pictures of the runs that are due, if they are true still; they are due no longer."""
        runs = [run for run, when in self._due.items() if when <= at]
        for run in runs:
            del self._due[run]
        seen = [self._last[run] for run in runs if run in self._last]
        return [one for one in seen if self._problem is None and at - one.at <= SEEN_LATELY]
