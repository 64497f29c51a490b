"""Who is asking: their rights, and the limits they have to keep."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import Info

from starforge.api.context import of_info
from starforge.api.jobs.subscriptions import SNAPSHOT_MAX
from starforge.api.limits_types import RateLimit
from starforge.api.logs.pages import LINES_MAX
from starforge.api.paging import ROWS_MAX
from starforge.api.scalars import BigInt
from starforge.api.transport.limits import TransportLimits
from starforge.domain.actions.submit_many import BATCH_MAX
from starforge.domain.capsule import CODE_LIMITS, INLINE_LIMITS
from starforge.domain.idempotency import PROMISED
from starforge.domain.job import ActorKind
from starforge.domain.rights import PROJECTS_MAX, Caller, Permission, Role


@strawberry.type(description="Limits in force for the caller.")
class Limits:
    page_size: int = strawberry.field(description="Largest `first` or `last`.")
    log_page_size: int = strawberry.field(description="Largest `first` or `last` of log lines.")
    batch_size: int = strawberry.field(description="Most jobs in one `submitJobs`.")
    inline_code_bytes: BigInt = strawberry.field(description="Most bytes of code given inline with a job.")
    code_bytes: BigInt = strawberry.field(description="Most bytes of code in all.")
    code_files: int = strawberry.field(description="Most files of code.")
    request_bytes: BigInt = strawberry.field(description="Most bytes of a request's body.")
    document_cost: int = strawberry.field(description="Most points one document may cost.")
    document_depth: int = strawberry.field(description="Deepest nesting of a document.")
    subscriptions_per_connection: int = strawberry.field(description="Most subscriptions on one connection.")
    connections: int = strawberry.field(description="Most connections at the same time.")
    snapshot_jobs: int = strawberry.field(description="Most jobs in the snapshot of `Subscription.jobs`.")
    idempotency_seconds: int = strawberry.field(
        description="Seconds for which an idempotency key is remembered at least."
    )

    @classmethod
    def of(cls, transport: TransportLimits) -> Self:
        """Those of the domain, and of the transport of this gateway."""
        return cls(
            page_size=ROWS_MAX,
            log_page_size=LINES_MAX,
            batch_size=BATCH_MAX,
            inline_code_bytes=BigInt(INLINE_LIMITS.bytes),
            code_bytes=BigInt(CODE_LIMITS.bytes),
            code_files=CODE_LIMITS.files,
            request_bytes=BigInt(transport.body_bytes),
            document_cost=transport.document_cost,
            document_depth=transport.document_depth,
            subscriptions_per_connection=transport.operations_per_connection,
            connections=transport.connections_per_caller,
            snapshot_jobs=SNAPSHOT_MAX,
            idempotency_seconds=int(PROMISED.total_seconds()),
        )


@strawberry.type(description="Who is asking.")
class Viewer:
    caller: strawberry.Private[Caller]
    name: str = strawberry.field(description="Name to show.")
    kind: ActorKind = strawberry.field(description="What it is.")
    role: Role = strawberry.field(description="Its role.")
    project: str | None = strawberry.field(
        description="Project that new jobs go to unless they name one; null if they must name one."
    )

    @strawberry.field(
        description="Projects it may see, in name order, at most 1,000; all there are for ADMIN.",
    )
    async def projects(self, info: Info) -> list[str]:
        if self.caller.projects is not None:
            return sorted(self.caller.projects)[:PROJECTS_MAX]
        context = of_info(info)
        found = await context.services.thread(context.ports.store.projects, limit=PROJECTS_MAX)
        return sorted({*found, *([self.project] if self.project else ())})[:PROJECTS_MAX]

    permissions: list[Permission] = strawberry.field(
        description="What it may do, the role spelled out for showing and hiding parts of a page."
    )
    expires_at: datetime | None = strawberry.field(
        description="When its token expires, upon which sockets are closed with 4403; null if never."
    )

    @strawberry.field(description="The limits in force, so that tools need no constants.")
    def limits(self, info: Info) -> Limits:
        return Limits.of(of_info(info).services.limits)

    @strawberry.field(description="Points it may still spend.")
    def rate_limit(self, info: Info) -> RateLimit:
        return RateLimit.of(of_info(info).services.budget, self.caller)

    @classmethod
    def of(cls, caller: Caller) -> Self:
        return cls(
            caller=caller,
            name=caller.actor.name,
            kind=caller.actor.kind,
            role=caller.role,
            project=caller.project,
            permissions=list(caller.permissions),
            expires_at=caller.expires_at,
        )


@strawberry.type
class ViewerQueries:
    @strawberry.field(description="Who is asking, with rights, quotas and limits.")
    def viewer(self, info: Info) -> Viewer:
        return Viewer.of(of_info(info).caller)
