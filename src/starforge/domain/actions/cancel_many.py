"""cancelJobs: every job that matches and has not ended, the oldest first, in few transactions; or a look at them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from starforge.domain.actions.apply import apply
from starforge.domain.actions.cancel import CancelStatus, Wish, cancel, check, request, status_of
from starforge.domain.changes import Changes
from starforge.domain.errors import Problem, StaleRevision, UserMistake, WrongState
from starforge.domain.job import Job
from starforge.domain.names import JobId
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.rights import Caller

LIMIT_MAX = 500
COUNT_MAX = 1_000_000
_PAGE = 200
_TOGETHER = 50
_OLDEST_FIRST = JobOrder(descending=False)


@dataclass(frozen=True)
class Sweep:
    """Which jobs, how many at most, and whether to look only; `max_matched` refuses a filter that matches more."""

    which: JobFilter
    wish: Wish
    limit: int = 100
    max_matched: int | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Swept:
    """`outcomes` from the oldest job on; `matched` had not ended, `remaining` of them were not looked at.

    `mistake` is set, and nothing was done, if more matched than was allowed for. `refused` says why for each job of an
    outcome REFUSED; the others of the call are canceled all the same.
    """

    outcomes: Sequence[tuple[CancelStatus, Job]]
    matched: int
    remaining: int
    mistake: UserMistake | None = None
    refused: Mapping[JobId, UserMistake] = field(default_factory=dict)

    @property
    def gpus(self) -> int:
        """What the jobs of the outcomes hold or ask for."""
        return sum(job.spec.gpus for _, job in self.outcomes)


def cancel_many(ports: Ports, sweep: Sweep, caller: Caller) -> Swept:
    """Cancel what matches of what `caller` sees; UserMistake if the call can't be. Repeat until `remaining` is 0.

    A job that is ending already takes no place within the limit from one that is not, so that each call gets further.
    """
    _check(sweep)
    if sweep.which.active is False:
        return Swept((), 0, 0)
    which = caller.jobs(replace(sweep.which, active=True))
    matched = ports.store.job_count(which, at_most=COUNT_MAX)
    if sweep.max_matched is not None and matched > sweep.max_matched:
        message = f"{matched} jobs match, and {sweep.max_matched} were allowed for; nothing was done."
        mistake = WrongState([Problem("FILTER_TOO_WIDE", ("maxMatched",), message)])
        return Swept((), matched, matched, mistake)
    chosen, remaining = _chosen(ports, which, sweep.limit, matched)
    if sweep.dry_run:
        return Swept([_looked_at(job) for job in chosen], matched, remaining)
    refused: dict[JobId, UserMistake] = {}
    outcomes = list(_canceled(ports, chosen, sweep.wish, refused))
    return Swept(outcomes, matched, remaining, refused=refused)


def _check(sweep: Sweep) -> None:
    problems = []
    if replace(sweep.which, name_prefix=sweep.which.name_prefix or None) == JobFilter():
        message = "The filter has nothing set, so that it means every job; say which are meant."
        problems.append(Problem("FILTER_TOO_WIDE", ("filter",), message))
    if not 1 <= sweep.limit <= LIMIT_MAX:
        problems.append(Problem("OUT_OF_RANGE", ("limit",), f"limit must be 1 to {LIMIT_MAX}."))
    if sweep.max_matched is not None and sweep.max_matched < 0:
        problems.append(Problem("OUT_OF_RANGE", ("maxMatched",), "maxMatched must be 0 or more."))
    try:
        check(sweep.wish)
    except WrongState as mistake:
        problems += mistake.problems
    if problems:
        raise WrongState(problems)


def _chosen(ports: Ports, which: JobFilter, limit: int, matched: int) -> tuple[list[Job], int]:
    """The oldest jobs that can be canceled, then of those that are ending already; and how many are left."""
    fresh: list[Job] = []
    ending: list[Job] = []
    seen = 0
    for job in _oldest(ports, which):
        if len(fresh) == limit:
            break
        seen += 1
        mine = fresh if status_of(job) is CancelStatus.REQUESTED else ending
        if len(mine) < limit:
            mine.append(job)
    else:
        matched = seen
    chosen = fresh + ending[: limit - len(fresh)]
    return sorted(chosen, key=lambda job: (job.created_at, job.id)), max(0, matched - seen)


def _oldest(ports: Ports, which: JobFilter) -> Iterator[Job]:
    window = Window(_PAGE)
    while True:
        page = ports.store.job_page(which, _OLDEST_FIRST, window)
        yield from (job for _, job in page.rows)
        if not page.has_next:
            return
        window = Window(_PAGE, after=page.rows[-1][0])


def _looked_at(job: Job) -> tuple[CancelStatus, Job]:
    status = status_of(job)
    return (CancelStatus.WOULD_CANCEL if status is CancelStatus.REQUESTED else status), job


def _canceled(
    ports: Ports, jobs: Sequence[Job], wish: Wish, refused: dict[JobId, UserMistake]
) -> Iterator[tuple[CancelStatus, Job]]:
    """The outcome of each; notes in `refused` why one was."""
    for start in range(0, len(jobs), _TOGETHER):
        some = jobs[start : start + _TOGETHER]
        try:
            yield from _together(ports, some, wish)
        except (StaleRevision, UserMistake):  # somebody changed one of them meanwhile
            yield from (_alone(ports, job, wish, refused) for job in some)


def _alone(ports: Ports, job: Job, wish: Wish, refused: dict[JobId, UserMistake]) -> tuple[CancelStatus, Job]:
    try:
        return cancel(ports, job.id, wish)
    except UserMistake as mistake:
        refused[job.id] = mistake
        return CancelStatus.REFUSED, job


def _together(ports: Ports, jobs: Sequence[Job], wish: Wish) -> list[tuple[CancelStatus, Job]]:
    changes = Changes()
    for job in jobs:
        if status_of(job) is CancelStatus.REQUESTED:
            request(ports, changes, job, wish)
    if not changes.empty:
        apply(ports, changes)
    after = ports.store.jobs_by_id([job.id for job in jobs])
    return [(status_of(job), after[job.id]) for job in jobs]
