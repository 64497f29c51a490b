"""The fleets that jobs can run on, and where an attempt was put."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import Info

from starforge.api import ids
from starforge.api.capacity.queries import fleet_capacity
from starforge.api.capacity.types import FleetCapacity
from starforge.api.context import Context, of_info
from starforge.api.directives import cost, list_size
from starforge.api.health.types import FleetHealth
from starforge.api.interfaces import Node
from starforge.api.jobs.spec import Deadlines
from starforge.api.mirror import mirror
from starforge.domain import job, ports, spec
from starforge.domain.ports import FleetKind


@strawberry.type(description="What a spec gets where it says nothing.")
class FleetDefaults:
    image: str | None = strawberry.field(description="Container image; null if a spec must name one.")
    cpus: int = strawberry.field(description="CPU cores of each machine.")
    memory: str = strawberry.field(description="Memory of each machine as a Kubernetes quantity.")
    shm_size: str = strawberry.field(description="Size of /dev/shm as a Kubernetes quantity.")
    deadlines: Deadlines = strawberry.field(description="Limits of the three clocks.")
    cancel_grace_seconds: int = strawberry.field(description="Seconds between SIGTERM and removal when canceled.")

    @classmethod
    def of(cls, row: spec.FleetDefaults) -> Self:
        return mirror(cls, row, deadlines=mirror(Deadlines, row.deadlines))


@strawberry.type(description="A place where jobs run: a cluster, this machine, or a simulation.")
class Fleet(Node):
    name: str = strawberry.field(description="Name, unique, as used in specs and filters.")
    kind: FleetKind = strawberry.field(description="What it is.")
    is_default: bool = strawberry.field(description="Whether a job that names no fleet tries it first.")
    storage_shared: bool = strawberry.field(
        description=(
            "Whether its storage can be mounted by several machines at once; if not, jobs of more than one machine are "
            "refused."
        )
    )
    logical_gpus: bool = strawberry.field(
        description="Whether its GPUs are logical only, as on a cluster without devices."
    )
    defaults: FleetDefaults = strawberry.field(description="What a spec gets where it says nothing.")

    @strawberry.field(description="Its GPUs as last seen.", directives=[cost(5)])
    async def capacity(self, info: Info) -> FleetCapacity:
        return await fleet_capacity(of_info(info))

    @strawberry.field(description="Its health.", directives=[cost(5)])
    async def health(self, info: Info) -> FleetHealth:
        known = await of_info(info).services.health.look()
        [found] = [one for one in known.health.fleets if one.fleet == self.name]
        return FleetHealth.of(found, self.kind)

    @classmethod
    def of(cls, row: ports.Fleet) -> Self:
        defaults = row.defaults()
        return cls(
            id=strawberry.ID(ids.fleet(row.name)),
            name=row.name,
            kind=row.kind,
            is_default=True,  # there is one
            storage_shared=defaults.storage_shared,
            logical_gpus=defaults.logical_gpus,
            defaults=FleetDefaults.of(defaults),
        )


@strawberry.type(description="Where an attempt was put.")
class Placement:
    fleet: Fleet = strawberry.field(description="The fleet.")
    decided_at: datetime = strawberry.field(description="When that was decided.")
    namespace: str | None = strawberry.field(description="Kubernetes namespace, or null on a fleet without one.")


def placement(context: Context, attempt: job.Attempt) -> Placement | None:
    """Where the attempt was put, None until it was launched."""
    if attempt.launched_at is None:
        return None
    namespace = attempt.run.namespace if attempt.run else None
    return Placement(fleet=Fleet.of(context.ports.fleet), decided_at=attempt.launched_at, namespace=namespace)


@strawberry.type
class FleetQueries:
    @strawberry.field(
        description=(
            "The fleets that jobs can run on, in the order in which a job without a fleet tries them; at most 100."
        ),
        directives=[list_size(5)],
    )
    def fleets(self, info: Info) -> list[Fleet]:
        return [Fleet.of(of_info(info).ports.fleet)]
