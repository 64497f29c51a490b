"""What waits for machines: which pools of which jobs have no place on a node, and what they are told."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from starforge.domain.capacity.nodes import NodeView
from starforge.domain.job import Job, JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.placing import machines_of
from starforge.domain.spec import PoolSpec

Placed = Mapping[tuple[RunKey, str | None], int]
"""How many machines of each pool of a run are on nodes."""
_NO_PODS = {
    JobState.SUBMITTED: "it was submitted, and its code is not packed yet",
    JobState.PACKAGING: "its code is being packed",
    JobState.LAUNCHING: "it is being launched",
}
WAITS = frozenset({JobState.SUBMITTED, JobState.PACKAGING, JobState.LAUNCHING, JobState.PENDING})


@dataclass(frozen=True)
class Demand:
    """Machines of a pool without a place, with `gpus` each; `message` says why not now, and may name what is the job's
    own."""

    job: JobId
    project: str
    pool: str
    series: str
    machines: int
    gpus: int
    since: datetime
    message: str

    @property
    def numbers(self) -> str:
        """What all may know of it, as a sentence."""
        what = f"{self.machines} machine{'' if self.machines == 1 else 's'} with {self.gpus} {self.series} GPU"
        each = " each" if self.machines > 1 else ""
        return f"{what}{'' if self.gpus == 1 else 's'}{each} {_have(self.machines)} no node yet."


def placed(views: Iterable[NodeView]) -> Placed:
    """Of all that is on some nodes."""
    found: Counter[tuple[RunKey, str | None]] = Counter()
    for view in views:
        found.update((claim.run, claim.pool) for claim in view.claims if claim.run)
    return found


def demands(jobs: Iterable[Job], there: Placed) -> list[Demand]:
    """What some jobs still wait for, longest first; pools without GPUs wait for none."""
    waiting = (job for job in jobs if job.state in WAITS and not job.decided)
    found = [demand for job in waiting for demand in _of(job, there)]
    return sorted(found, key=lambda demand: (demand.since, demand.job))


def _of(job: Job, there: Placed) -> Iterator[Demand]:
    for pool in job.spec.pools:
        missing = pool.machines - there.get((job.run, pool.name), 0)
        if missing > 0 and pool.gpus_per_machine:
            yield Demand(
                job.id,
                job.spec.project,
                pool.name,
                pool.series,
                missing,
                pool.gpus_per_machine,
                job.attempt.created_at,
                _message(job, pool, missing),
            )


def _message(job: Job, pool: PoolSpec, missing: int) -> str:
    if job.attempt.reason:
        return job.attempt.reason.message
    why = _NO_PODS.get(job.state, "its Pods are not on a node")
    what = machines_of(pool.name, pool.series, missing, pool.gpus_per_machine)
    return f"{what} {_have(missing)} no node yet: {why}."


def _have(machines: int) -> str:
    return "has" if machines == 1 else "have"
