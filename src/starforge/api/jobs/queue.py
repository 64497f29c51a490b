"""A job's place in a queue, ours or one of the cluster, and the queues themselves."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import Info

from starforge.api import ids
from starforge.api.context import of_info
from starforge.api.interfaces import Node
from starforge.api.mirror import mirror
from starforge.api.queue_lengths import QueueName
from starforge.domain import job
from starforge.domain.job import JobState
from starforge.domain.queue import QueueKind
from starforge.domain.reason import ReasonCode

OWN = "starforge"
"""Name of StarForge's own queue, of which each fleet has one."""


@strawberry.type(description="A line of jobs that wait for GPUs.")
class Queue(Node):
    named: strawberry.Private[QueueName]
    name: str = strawberry.field(description="Name, unique within the fleet.")
    kind: QueueKind = strawberry.field(description="Who decides.")

    @strawberry.field(description="Jobs that wait in it.")
    async def length(self, info: Info) -> int:
        found: int = await of_info(info).loaders.queue_lengths.load(self.named)
        return found

    @classmethod
    def of(cls, fleet: str, named: QueueName) -> Self:
        kind = QueueKind.KUEUE if named else QueueKind.STARFORGE
        return cls(id=strawberry.ID(ids.queue(fleet, kind, named or OWN)), named=named, name=named or OWN, kind=kind)


@strawberry.type(description="A place in a queue.")
class QueuePlace:
    queue: Queue = strawberry.field(description="The queue.")
    position: int | None = strawberry.field(description="Position, from 1; null when the queue does not tell.")
    gpus_ahead: int | None = strawberry.field(
        description="GPUs asked for by those in front; null when the queue does not tell."
    )
    estimated_start_at: datetime | None = strawberry.field(
        description="When it may start if everybody keeps to their clocks; null when that can't be told."
    )
    decision: str = strawberry.field(description="Sentence that explains the last decision about it.")
    decided_at: datetime = strawberry.field(description="When that decision was made.")


def queue_place(row: job.Job, fleet: str) -> QueuePlace | None:
    """Where a job queues; None if it does not."""
    place, why = row.attempt.queue, row.attempt.reason
    if row.queues and place:
        return mirror(QueuePlace, place, queue=Queue.of(fleet, None))
    if row.state is JobState.PENDING and row.spec.queue and why and why.code is ReasonCode.QUEUED:
        return QueuePlace(
            queue=Queue.of(fleet, row.spec.queue),
            position=None,
            gpus_ahead=None,
            estimated_start_at=None,
            decision=why.message,
            decided_at=why.since,
        )
    return None
