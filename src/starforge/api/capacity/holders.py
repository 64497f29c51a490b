"""Who holds GPUs and who waits for them, as far as a caller may see it."""

from datetime import datetime
from typing import ClassVar, Self

import strawberry
from strawberry import Info

from starforge.api.capacity.desk import Known
from starforge.api.context import of_info
from starforge.api.interfaces import Workload
from starforge.api.mirror import Made, Mirror, mirror
from starforge.domain import job
from starforge.domain.capacity import waiting
from starforge.domain.capacity.view import HeldGpus, HolderKind
from starforge.domain.names import JobId
from starforge.domain.rights import Caller

NODES_MAX = 100


@strawberry.type(description="Somebody who holds GPUs.")
class Holder(Mirror):
    known: strawberry.Private[Known]
    kind: HolderKind = strawberry.field(description="What it is.")

    @strawberry.field(description="Name to show; null if the caller may not see it.")
    def name(self, info: Info) -> str | None:
        caller = of_info(info).caller
        if row := self._job(caller):
            return row.spec.name
        return self.mirrored.name if caller.sees(None) else None

    @strawberry.field(description="The job or playground; null for a foreign Pod and if the caller may not see it.")
    def workload(self, info: Info) -> Workload | None:
        return _workload(self._job(of_info(info).caller))

    @strawberry.field(description="Pool of the job; null if it is none.")
    def pool(self, info: Info) -> str | None:
        caller = of_info(info).caller
        return self.mirrored.pool if caller.sees(None) or self._job(caller) else None

    gpus: int = strawberry.field(description="GPUs held.")
    nodes: list[str] = strawberry.field(description="Names of the nodes they are on; at most 100.")
    since: datetime | None = strawberry.field(description="Since when; null if not told.")
    until: datetime | None = strawberry.field(description="When it must have ended, by its clock; null if it has none.")
    releasing: bool = strawberry.field(description="True while its Pods are being removed.")

    def _job(self, caller: Caller) -> job.Job | None:
        return seen_job(self.known, self.mirrored.run.job, caller) if self.mirrored.run else None

    made: ClassVar[Made] = {
        "nodes": lambda this: list(this.mirrored.nodes[:NODES_MAX]),
        "until": lambda this: this.known.until(this.mirrored),
    }

    @classmethod
    def of(cls, row: HeldGpus, known: Known) -> Self:
        return mirror(cls, row, known=known)


@strawberry.type(description="A wait for GPUs.")
class Demand(Mirror):
    known: strawberry.Private[Known]

    @strawberry.field(description="The job or playground; null if the caller may not see it.")
    def workload(self, info: Info) -> Workload | None:
        return _workload(self._job(info))

    @strawberry.field(description="Pool of the job; null if it is none.")
    def pool(self, info: Info) -> str | None:
        return self.mirrored.pool if self._job(info) else None

    series: str = strawberry.field(description="Series asked for.")
    machines: int = strawberry.field(description="Machines without a place.")
    gpus_per_machine: int = strawberry.field(description="GPUs of each machine.")
    since: datetime = strawberry.field(description="Since when.")

    @strawberry.field(description="Sentence that says why not now.")
    def message(self, info: Info) -> str:
        # What holds a job has the names of its Pods and pools in it, which are for those who may see the job.
        return str(self.mirrored.message if self._job(info) else self.mirrored.numbers)

    def _job(self, info: Info) -> job.Job | None:
        return seen_job(self.known, self.mirrored.job, of_info(info).caller)

    made: ClassVar[Made] = {"gpus_per_machine": "mirrored.gpus"}

    @classmethod
    def of(cls, row: waiting.Demand, known: Known) -> Self:
        return mirror(cls, row, known=known)


def seen_job(known: Known, job_id: JobId, caller: Caller) -> job.Job | None:
    """A job that holds or waits, if the caller may see it."""
    row = known.jobs.get(job_id)
    return row if row and caller.sees(row.spec.project) else None


def _workload(row: job.Job | None) -> Workload | None:
    from starforge.api.jobs.types import Job

    return Job.of(row) if row else None
