"""Health as the schema shows it."""

from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import Self

import strawberry
from strawberry import Info

from starforge.api.context import of_info
from starforge.api.directives import list_size
from starforge.api.interfaces import Workload
from starforge.api.mirror import mirror
from starforge.domain import health as domain
from starforge.domain.health import HealthCheckKind, HealthStatus
from starforge.domain.names import RunKey
from starforge.domain.ports import FleetKind
from starforge.domain.rights import Role
from starforge.domain.timeline import CommandKind

PARKED_MAX = 100


@strawberry.type(description="One thing that was checked.")
class HealthCheck:
    kind: HealthCheckKind = strawberry.field(description="What was checked.")
    status: HealthStatus = strawberry.field(description="How well it works.")
    message: str | None = strawberry.field(
        description="Sentence that says what is wrong and whose move it is; null when OK."
    )
    since: datetime = strawberry.field(description="Since when it has this status.")
    checked_at: datetime = strawberry.field(description="When it was last checked.")
    seconds: float | None = strawberry.field(
        description="How long the check took, in seconds; null if it got no answer."
    )


@strawberry.type(description="Whether the service account may do one thing.")
class AccessCheck:
    verb: str = strawberry.field(description="Verb, for example create.")
    resource: str = strawberry.field(description="Resource, for example rayjobs.ray.io.")
    allowed: bool | None = strawberry.field(description="Whether it may; null if that could not be asked.")


@strawberry.type(description="Health of a fleet.")
class FleetHealth:
    of_fleet: strawberry.Private[domain.FleetHealth]
    fleet: str = strawberry.field(description="Name of the fleet.")
    kind: FleetKind = strawberry.field(description="What it is.")
    status: HealthStatus = strawberry.field(description="The worst of its checks that matters.")
    message: str | None = strawberry.field(description="Sentence for a banner; null when all is well.")
    checks: list[HealthCheck] = strawberry.field(description="Its checks.", directives=[list_size(8)])
    observer_lag_seconds: float | None = strawberry.field(
        description=(
            "Seconds between a change in the cluster and our knowing it, lately; null if the cluster can't be asked."
        )
    )
    kubernetes_version: str | None = strawberry.field(
        description="Kubernetes version; null if not told or not a cluster."
    )
    operator_version: str | None = strawberry.field(
        description="KubeRay operator version; null if not told or not a cluster."
    )
    ray_job_api_version: str | None = strawberry.field(
        description="Version of the RayJob definition that is used, for example ray.io/v1; null if there is none."
    )

    @strawberry.field(
        description=(
            "What the service account was asked and answered; null for callers below ADMIN and if not a cluster."
        ),
        directives=[list_size(30)],
    )
    def access(self, info: Info) -> list[AccessCheck] | None:
        access = self.of_fleet.access
        if access is None or not of_info(info).caller.has(Role.ADMIN):
            return None
        return [mirror(AccessCheck, one) for one in access]

    @classmethod
    def of(cls, row: domain.FleetHealth, kind: FleetKind) -> Self:
        return mirror(
            cls,
            row,
            of_fleet=row,
            kind=kind,
            checks=[mirror(HealthCheck, check) for check in row.checks],
            ray_job_api_version=row.rayjob_api_version,
        )


@strawberry.type(description="A piece of durable work.")
class Command:
    run: strawberry.Private[RunKey]
    id: strawberry.ID = strawberry.field(description="Opaque id to quote.")
    kind: CommandKind = strawberry.field(description="What is to be done.")

    @strawberry.field(description="The job or playground it is for; null if for none.")
    async def workload(self, info: Info) -> Workload | None:
        from starforge.api.jobs.types import Job

        row = await of_info(info).loaders.jobs.load(self.run.job)
        return Job.of(row) if row else None

    tries: int = strawberry.field(description="Tries so far.")
    last_tried_at: datetime | None = strawberry.field(description="When it was last tried; null if never.")
    error: str | None = strawberry.field(description="What went wrong last, with secrets removed; null if nothing did.")


@strawberry.type(description="The durable work behind mutations.")
class CommandQueue:
    due: int = strawberry.field(description="Commands that are due and not done.")
    oldest_due_at: datetime | None = strawberry.field(
        description="Since when the oldest of them is due; null if there is none."
    )
    parked: int = strawberry.field(description="Commands that failed too often and wait for a person.")

    @strawberry.field(
        description="Those commands, newest first, at most 100; null for callers below ADMIN.",
        directives=[list_size(20)],
    )
    async def parked_commands(self, info: Info) -> list[Command] | None:
        context = of_info(info)
        if not context.caller.has(Role.ADMIN):
            return None
        rows = await context.services.thread(context.ports.store.parked, limit=PARKED_MAX)
        return [mirror(Command, row, id=strawberry.ID(row.id)) for row in rows]


@strawberry.type(description="Whether StarForge and its fleets can do their work.")
class Health:
    status: HealthStatus = strawberry.field(description="The worst that matters: DOWN only if nothing works.")
    message: str | None = strawberry.field(description="Sentence for a banner; null when all is well.")
    checked_at: datetime = strawberry.field(description="When the checks were last made, at the oldest.")
    checks: list[HealthCheck] = strawberry.field(
        description="Checks of StarForge's own parts.", directives=[list_size(10)]
    )
    fleets: list[FleetHealth] = strawberry.field(
        description="The fleets, in name order; at most 100.", directives=[list_size(5)]
    )
    commands: CommandQueue = strawberry.field(description="The work behind the scenes.")
    version: str = strawberry.field(description="Version of the gateway that answered.")

    @classmethod
    def of(cls, row: domain.Health, kind: FleetKind) -> Self:
        return mirror(
            cls,
            row,
            checks=[mirror(HealthCheck, check) for check in row.checks],
            fleets=[FleetHealth.of(fleet, kind) for fleet in row.fleets],
            commands=mirror(CommandQueue, row.commands),
            version=gateway_version(),
        )


@cache
def gateway_version() -> str:
    return version("starforge")
