"""Nodes with GPUs, and what blocks these."""

from datetime import datetime
from typing import ClassVar, Self

import strawberry

from starforge.api import ids
from starforge.api.capacity.desk import Known
from starforge.api.capacity.holders import Holder
from starforge.api.directives import cost, list_size
from starforge.api.interfaces import Node
from starforge.api.mirror import Made, Mirror, mirror
from starforge.domain.capacity import nodes as domain
from starforge.domain.capacity import view
from starforge.domain.capacity.nodes import GpuSharing, KnownNode
from starforge.domain.capacity.view import BlockKind, NodeGpus, node_gpus

NODES_MAX = 5000
TAINTS_MAX = 20
HOLDERS_MAX = 100


@strawberry.type(description="A number of nodes with the same number of free GPUs.", directives=[cost(0)])
class FreeBlock(Mirror):
    gpus: int = strawberry.field(description="Free GPUs on each of them.")
    nodes: int = strawberry.field(description="How many nodes there are.")

    @classmethod
    def of(cls, row: view.FreeBlock) -> Self:
        return mirror(cls, row)


@strawberry.type(description="A taint of a node.")
class Taint(Mirror):
    key: str = strawberry.field(description="Key.")
    value: str | None = strawberry.field(description="Value; null if it has none.")
    effect: str = strawberry.field(description="Effect, for example NoSchedule.")

    @classmethod
    def of(cls, row: domain.Taint) -> Self:
        return mirror(cls, row)


@strawberry.type(description="Why GPUs can't be had by new Pods.")
class BlockCause(Mirror):
    cause: BlockKind = strawberry.field(description="The cause.")
    gpus: int = strawberry.field(description="GPUs blocked by it.")
    nodes: int = strawberry.field(description="Nodes on which it blocks some.")
    message: str = strawberry.field(description="Sentence for a person, with the taint or condition.")
    since: datetime | None = strawberry.field(
        description="Since when, at the earliest of these nodes; null if that was not seen."
    )

    @classmethod
    def of(cls, row: view.BlockCause) -> Self:
        return mirror(cls, row)


@strawberry.type(description="A Kubernetes node with GPUs, or the machine itself on the local fleet.")
class GpuNode(Node, Mirror):
    known: strawberry.Private[Known]
    seen_at: strawberry.Private[datetime]
    name: str = strawberry.field(description="Name in the cluster.")
    fleet: str = strawberry.field(description="Name of its fleet.")
    series: str = strawberry.field(description="Value of its series label, or UNLABELLED.")
    total: int = strawberry.field(description="GPUs there are, by the node's capacity.")
    allocatable: int = strawberry.field(description="GPUs that are healthy, by the node's allocatable.")
    used: int = strawberry.field(
        description="GPUs asked for by Pods that are on it and have not ended, those being removed included."
    )
    free: int = strawberry.field(description="GPUs a new Pod could get now.")
    blocked: int = strawberry.field(description="GPUs nobody uses and no new Pod can get.")
    logical_gpus: bool = strawberry.field(description="Whether its GPUs are logical only.")
    sharing: GpuSharing = strawberry.field(description="How its devices are divided.")
    product: str | None = strawberry.field(
        description="Product name of its GPUs as the node's labels tell it; null if they do not."
    )
    ready: bool | None = strawberry.field(description="Whether it is ready; null when it can't be asked.")
    cordoned: bool = strawberry.field(description="Whether it is cordoned.")
    taints: list[Taint] = strawberry.field(
        description="Its taints that keep Pods off; at most 20.", directives=[list_size(3)]
    )
    causes: list[BlockCause] = strawberry.field(
        description="Why its GPUs are blocked; empty when none is.", directives=[list_size(1)]
    )
    holders: list[Holder] = strawberry.field(description="Who holds its GPUs; at most 100.", directives=[list_size(2)])
    observed_at: datetime = strawberry.field(description="When it was last seen.")

    made: ClassVar[Made] = {
        "id": lambda this: ids.node(this.known.fleet, this.mirrored.view.name),
        "name": "mirrored.view.name",
        "fleet": "known.fleet",
        "series": "mirrored.view.series_name",
        "logical_gpus": "mirrored.view.logical",
        "sharing": "mirrored.view.sharing",
        "product": "mirrored.view.product",
        "ready": "mirrored.view.ready",
        "cordoned": "mirrored.view.cordoned",
        "taints": lambda this: [Taint.of(one) for one in this.mirrored.view.taints[:TAINTS_MAX]],
        "causes": lambda this: [BlockCause.of(one) for one in this.mirrored.causes],
        "holders": lambda this: [Holder.of(one, this.known) for one in this.mirrored.holders[:HOLDERS_MAX]],
        # As long as the fleet is heard, a node that nothing is told of is as it was.
        "observed_at": lambda this: max(this.seen_at, this.known.heard.observed_at or this.seen_at),
    }

    @classmethod
    def of(cls, row: KnownNode, known: Known) -> Self:
        return cls.of_gpus(node_gpus(row.view), row.seen_at, known)

    @classmethod
    def of_gpus(cls, row: NodeGpus, seen_at: datetime, known: Known) -> Self:
        return mirror(cls, row, known=known, seen_at=seen_at)
