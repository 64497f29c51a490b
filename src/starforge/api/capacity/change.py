"""A step of the live stream of capacity."""

import strawberry

from starforge.api.capacity.nodes import GpuNode
from starforge.api.capacity.types import FleetCapacity
from starforge.api.directives import list_size
from starforge.api.feed.types import Change


@strawberry.type(description="A step in the capacity of one fleet.")
class CapacityChange(Change):
    fleet: FleetCapacity | None = strawberry.field(description="The whole fleet after this step; null in a bookmark.")
    changed_nodes: list[GpuNode] = strawberry.field(
        description=(
            "Only the nodes that are new or changed, so that a grid of thousands can be patched; all of them in a "
            "snapshot, at most 5,000."
        ),
        directives=[list_size(20)],
    )
    removed_node_ids: list[strawberry.ID] = strawberry.field(description="Ids of nodes that are gone.")
