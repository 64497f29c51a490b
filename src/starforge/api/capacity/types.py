"""GPUs of fleets and of their series."""

from datetime import datetime
from itertools import islice
from typing import Annotated, ClassVar, Self

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.capacity.desk import Known
from starforge.api.capacity.holders import Demand, Holder
from starforge.api.capacity.nodes import NODES_MAX, BlockCause, FreeBlock, GpuNode
from starforge.api.context import of_info
from starforge.api.directives import list_size
from starforge.api.interfaces import Node
from starforge.api.jobs.queue import Queue
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.queue_lengths import QueueName, queue_lengths
from starforge.api.values import Observation
from starforge.domain import ports
from starforge.domain.capacity.view import SeriesGpus
from starforge.domain.ports import FleetKind
from starforge.domain.queue import Queueing

SERIES_MAX = 100
HOLDERS_MAX = 1000
WAITING_MAX = 200
QUEUES_MAX = 100


@strawberry.type(description="GPUs of one series in a fleet.")
class SeriesCapacity(Node, Mirror):
    known: strawberry.Private[Known]
    name: str = strawberry.field(description="Value of the series label, or UNLABELLED for GPU nodes without one.")
    labelled: bool = strawberry.field(description="False for GPU nodes without the label, which no job can ask for.")
    logical_gpus: bool = strawberry.field(description="Whether these GPUs are logical only.")
    total: int = strawberry.field(description="GPUs there are, by the nodes' capacity.")
    allocatable: int = strawberry.field(description="GPUs that are healthy, by the nodes' allocatable.")
    used: int = strawberry.field(
        description="GPUs asked for by Pods that are on nodes and have not ended, those being removed included."
    )
    free: int = strawberry.field(description="GPUs a new Pod could get now.")
    blocked: int = strawberry.field(description="GPUs nobody uses and no new Pod can get.")
    largest_free: int = strawberry.field(
        description="Most free GPUs on any one node, which bounds `gpusPerMachine` right now."
    )
    largest_node: int = strawberry.field(
        description="Most GPUs any one node has, which bounds `gpusPerMachine` for good."
    )
    free_blocks: list[FreeBlock] = strawberry.field(
        description="How many nodes have how many free GPUs, largest first, nodes with none left out."
    )
    causes: list[BlockCause] = strawberry.field(
        description="Why GPUs are blocked, summed over nodes, most GPUs first.", directives=[list_size(5)]
    )

    @strawberry.field(description="Its nodes in name order; at most 5,000.", directives=[list_size(50)])
    def nodes(
        self, blocked_only: Annotated[bool, argument("Only nodes with at least one blocked GPU.")] = False
    ) -> list[GpuNode]:
        nodes = self.known.nodes.nodes if self.known.nodes else {}
        shown = (one for one in self.mirrored.nodes if one.blocked or not blocked_only)
        there = [GpuNode.of_gpus(one, nodes[one.view.name].seen_at, self.known) for one in shown]
        return there[:NODES_MAX]

    holders: list[Holder] = strawberry.field(
        description="Who holds its GPUs, most GPUs first; at most 1,000.", directives=[list_size(20)]
    )
    waiting: list[Demand] = strawberry.field(
        description="What waits for its GPUs, longest first; at most 200.", directives=[list_size(10)]
    )

    made: ClassVar[Made] = {
        "id": lambda this: ids.series(this.known.fleet, this.mirrored.name),
        "logical_gpus": "mirrored.logical",
        "free_blocks": lambda this: [FreeBlock.of(one) for one in this.mirrored.free_blocks],
        "causes": lambda this: [BlockCause.of(one) for one in this.mirrored.causes],
        "holders": lambda this: [Holder.of(one, this.known) for one in this.mirrored.holders[:HOLDERS_MAX]],
        "waiting": lambda this: _waiting(this.known, this.mirrored.name),
    }

    @classmethod
    def of(cls, row: SeriesGpus, known: Known) -> Self:
        return mirror(cls, row, known=known)


def _waiting(known: Known, series: str | None = None) -> list[Demand]:
    wanted = (one for one in known.demands if series in (None, one.series))
    return [Demand.of(one, known) for one in islice(wanted, WAITING_MAX)]


@strawberry.type(
    description="GPUs of a fleet as last seen; for every series and every node total = used + free + blocked."
)
class FleetCapacity(Node, Mirror):
    of_fleet: strawberry.Private[ports.Fleet]
    name: str = strawberry.field(description="Name of the fleet.")
    kind: FleetKind = strawberry.field(description="What the fleet is.")
    observed_at: datetime | None = strawberry.field(
        description="When the cluster was last heard; null if it never was."
    )
    observation: Observation = strawberry.field(description="How fresh the numbers are, and why they are not fresher.")
    logical_gpus: bool = strawberry.field(
        description="Whether its GPUs are logical only, as on a cluster without devices."
    )
    series: list[SeriesCapacity] | None = strawberry.field(
        description=(
            "Its GPUs by series, in name order, at most 100; null if the cluster was never heard, so that unknown does "
            "not look like none."
        ),
        directives=[list_size(4)],
    )
    waiting: list[Demand] = strawberry.field(
        description="What waits for GPUs, longest first; at most 200.", directives=[list_size(20)]
    )

    @strawberry.field(
        description="Its queues, in name order, at most 100; null where nothing queues.", directives=[list_size(5)]
    )
    async def queues(self, info: Info) -> list[Queue] | None:
        context = of_info(info)
        lengths = await context.services.thread(queue_lengths, context.ports.store, [])
        own: list[QueueName] = [] if context.ports.queueing is Queueing.OFF else [None]
        found = [Queue.of(self.name, named) for named in {*own, *lengths}]
        return sorted(found, key=lambda queue: queue.name)[:QUEUES_MAX] or None

    made: ClassVar[Made] = {
        "id": lambda this: ids.capacity(this.mirrored.fleet),
        "name": "mirrored.fleet",
        "kind": "of_fleet.kind",
        "observed_at": "mirrored.heard.observed_at",
        "observation": lambda this: Observation.of(this.mirrored.heard, this.mirrored.fleet),
        "logical_gpus": lambda this: this.of_fleet.defaults().logical_gpus,
        "series": lambda this: series_of(this.mirrored),
        "waiting": lambda this: _waiting(this.mirrored),
    }

    @classmethod
    def of(cls, known: Known, fleet: ports.Fleet) -> Self:
        return mirror(cls, known, of_fleet=fleet)


def series_of(known: Known) -> list[SeriesCapacity] | None:
    """The series of a fleet; None if it never told of its nodes."""
    made = known.made.series
    return None if made is None else [SeriesCapacity.of(one, known) for one in made[:SERIES_MAX]]
