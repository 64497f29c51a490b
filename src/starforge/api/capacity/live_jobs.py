"""Jobs that hold machines or wait for them, each read again only when the feed tells of it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from starforge.api.feed.listener import Listener
from starforge.domain.changes import Aspect
from starforge.domain.errors import FeedError
from starforge.domain.job import END_STATES, Job, JobState
from starforge.domain.names import JobId
from starforge.domain.ports import Store
from starforge.domain.queries import FeedKind, FeedRow, JobFilter, JobOrder, Window

PAGE = 1000
TOLD_MAX = 1000
"""Jobs that were told of and are not read yet; of more than that, all that are live are read."""
_ASPECTS = frozenset({Aspect.STATE, Aspect.REASON, Aspect.PODS, Aspect.CLOCKS})
_LIVE = tuple(state for state in JobState if state not in END_STATES)


def holds_or_waits_otherwise(row: FeedRow) -> bool:
    """Whether a row may tell that a job holds something else, or that it waits for something else."""
    return row.kind is FeedKind.JOB and not _ASPECTS.isdisjoint(row.aspects)


class ToldJobs(Listener):
    """The jobs that the feed told of since they were taken last. It keeps no rows, as it may be long until then."""

    def __init__(self) -> None:
        super().__init__(holds_or_waits_otherwise, coalesce=True)
        self._jobs: set[JobId] | None = None

    def offer(self, row: FeedRow) -> None:
        if self._jobs is not None and row.job and holds_or_waits_otherwise(row):
            self._jobs.add(row.job)
            self._jobs = self._jobs if len(self._jobs) <= TOLD_MAX else None

    def end(self, error: FeedError) -> None:
        """Rows were lost, and it goes on."""
        self._jobs = None

    def jobs(self) -> Collection[JobId] | None:
        """They, or None if it may be any."""
        taken, self._jobs = self._jobs, set()
        return taken

    def give_back(self, jobs: Collection[JobId] | None) -> None:
        """They were taken and not read."""
        self._jobs = None if jobs is None or self._jobs is None else self._jobs.union(jobs)


@dataclass
class LiveJobs:
    """All jobs that have not ended, and those that have and still hold something. Asked by one thread at a time."""

    store: Store
    _known: dict[JobId, Job | None] = field(default_factory=dict, init=False)

    def read(self, told: Collection[JobId] | None, holding: Collection[JobId]) -> Mapping[JobId, Job]:
        """They as they are now: `told` are those that may have changed, None for all; `holding` hold something.

        StoreUnavailable, and nothing was taken in then.
        """
        before = dict(self._all()) if told is None else self._known
        asked = {*(told or ()), *(job for job in holding if job not in before)}
        found = self.store.jobs_by_id(sorted(asked)) if asked else {}
        now = before | {job: found.get(job) for job in asked}
        self._known = {job: row for job, row in now.items() if job in holding or (row and not row.ended)}
        return {job: row for job, row in self._known.items() if row}

    def _all(self) -> Iterator[tuple[JobId, Job]]:
        after = None
        while True:
            page = self.store.job_page(JobFilter(states=_LIVE), JobOrder(), Window(PAGE, after=after))
            yield from ((job.id, job) for _, job in page.rows)
            if not page.has_next:
                return
            after = page.rows[-1][0]
