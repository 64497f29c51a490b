"""Capacity, asked once, and its parts by id."""

from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.capacity.nodes import GpuNode
from starforge.api.capacity.types import FleetCapacity, series_of
from starforge.api.context import Context, of_info
from starforge.api.directives import cost, list_size
from starforge.api.interfaces import Node


@strawberry.type
class CapacityQueries:
    @strawberry.field(
        description="GPUs per fleet and series as last seen, live from Nodes and Pods; at most 100 fleets.",
        directives=[cost(5), list_size(2)],
    )
    async def capacity(
        self,
        info: Info,
        fleet: Annotated[
            str | None,
            argument("Name of one fleet; every fleet if left out, an empty list if there is none of that name."),
        ] = None,
    ) -> list[FleetCapacity]:
        context = of_info(info)
        return [await fleet_capacity(context)] if fleet in (None, context.ports.fleet.name) else []


async def fleet_capacity(context: Context) -> FleetCapacity:
    """Capacity of the fleet, as it is now."""
    return FleetCapacity.of(await context.services.capacity.look(), context.ports.fleet)


async def capacity_node(context: Context, text: str) -> Node | None:
    """Capacity, a series or a node by its id; None if there is none."""
    fleet, kind = context.ports.fleet.name, ids.kind(text)
    if text == ids.capacity(fleet):
        return await fleet_capacity(context)
    name = ids.within(fleet, text)
    if name is None:
        return None
    known = await context.services.capacity.look()
    if kind == "series":
        return next((one for one in series_of(known) or () if one.name == name), None)
    found = known.nodes.nodes.get(name) if known.nodes else None
    return GpuNode.of(found, known) if found else None
