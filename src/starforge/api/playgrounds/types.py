"""Playgrounds as the schema has them."""

from collections.abc import Iterator
from datetime import datetime
from statistics import median
from typing import Annotated, ClassVar, Self

import strawberry
from strawberry import Info, argument

from starforge.api.context import of_info
from starforge.api.cursors import row_cursor
from starforge.api.directives import cost, list_size, page_size
from starforge.api.interfaces import LazyEvents, Workload, workload_events
from starforge.api.jobs.cluster import Pod
from starforge.api.jobs.spec import EnvVar
from starforge.api.jobs.types import Job
from starforge.api.logs.pages import log_page
from starforge.api.logs.types import LogLineConnection, LogSource
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.paging import PageArgs, page_info
from starforge.api.scalars import BigInt
from starforge.api.values import Actor, Clock, Label, Observation, PageInfo, Reason
from starforge.domain import playground as domain
from starforge.domain.playground import PlaygroundState
from starforge.domain.queries import Page
from starforge.domain.rights import Caller, Permission
from starforge.domain.timeline import Action


@strawberry.type(description="What a playground was used for.")
class PlaygroundUsage(Mirror):
    requests: int = strawberry.field(description="Requests so far.")
    active_requests: int = strawberry.field(description="Requests that are being answered right now.")
    prompt_tokens: BigInt = strawberry.field(description="Prompt tokens as the server reported them.")
    completion_tokens: BigInt = strawberry.field(description="Completion tokens as the server reported them.")
    first_token_seconds: float | None = strawberry.field(
        description=("Median time to the first token over the last 100 streams, in seconds; null before the first.")
    )

    made: ClassVar[Made] = {
        "first_token_seconds": lambda this: median(this.mirrored.first_tokens) if this.mirrored.first_tokens else None
    }

    @classmethod
    def of(cls, row: domain.Usage) -> Self:
        return mirror(cls, row)


def _observed_at(self: "Playground", info: Info) -> datetime | None:
    return of_info(info).observed_at(self.mirrored, self.mirrored.spec.machine.fleet)


@strawberry.type(description="A standalone vLLM Pod to talk to, with a time to live.")
class Playground(Workload, Mirror):
    gpus: int = strawberry.field(description="GPUs it asks for, logical ones included.")
    state: PlaygroundState = strawberry.field(description="Where it is.")
    ended: bool = strawberry.field(description="Whether it is in an end state.")
    observed_at: datetime | None = strawberry.field(
        description="When the cluster last told us about it; null until it did.", resolver=_observed_at
    )
    clocks: list[Clock] = strawberry.field(
        description="Its clocks with their due times: pre-running, time to live, idle."
    )
    events: LazyEvents = strawberry.field(
        description="Its timeline: our events and Kubernetes Events in one, oldest first; take `last` for the newest.",
        resolver=workload_events,
        directives=[page_size()],
    )
    model: str = strawberry.field(description="Model it serves: a hub name or a path below the storage root.")
    served_model_name: str = strawberry.field(description="Name to send as `model` in OpenAI requests.")
    image: str | None = strawberry.field(description="Container image; null on a fleet without images.")
    series: str = strawberry.field(description="GPU series.")
    args: list[str] = strawberry.field(description="Further arguments of `vllm serve`.")
    env: list[EnvVar] = strawberry.field(description="Environment variables, in the order given.")

    @strawberry.field(description="Job whose result it serves; null if none was named or the caller may not see it.")
    async def from_job(self, info: Info) -> Job | None:
        id_ = self.mirrored.spec.from_job
        row = await of_info(info).seen_job(id_) if id_ else None
        return Job.of(row) if row else None

    @strawberry.field(
        description=(
            "Base address of its OpenAI API, ending in /v1, for calls with the caller's own token; null before READY "
            "and after its end."
        )
    )
    def endpoint(self, info: Info) -> str | None:
        address = of_info(info).services.address
        return f"{address}/playgrounds/{self.mirrored.id}/v1" if self.mirrored.answers else None

    expires_at: datetime | None = strawberry.field(
        description=(
            "When it will be stopped if nobody extends or uses it, the earlier of time to live and idle; null before "
            "READY and after its end."
        )
    )
    last_used_at: datetime | None = strawberry.field(description="When the last request ended; null if there was none.")
    usage: PlaygroundUsage = strawberry.field(description="What it was used for so far.")

    @strawberry.field(  # type: ignore[misc]  # the interface has it without a resolver
        description="Its Pods, or processes on a fleet without Pods; at most 1,000.", directives=[list_size(2)]
    )
    async def pods(self, info: Info) -> list[Pod]:
        run = self.mirrored.key
        return [Pod.of(pod, run) for pod in (await of_info(info).loaders.pods.load(run))[:1000]]

    updated_at: datetime = strawberry.field(description="When anything about it last changed.")
    ready_at: datetime | None = strawberry.field(description="When it became READY; null before.")
    ended_at: datetime | None = strawberry.field(description="When it came to STOPPED or FAILED; null before.")

    @strawberry.field(  # type: ignore[misc]  # the interface has it without a resolver
        description="Where its log lines come from; at most 1,000.", directives=[list_size(3)]
    )
    async def log_sources(self, info: Info) -> list[LogSource]:
        sources = await of_info(info).loaders.log_sources.load(self.mirrored.key)
        return [LogSource.of(source) for source in sources[:1000]]

    @strawberry.field(
        description=(
            "Lines of one log, the same whether live or archived; null, with an error, when the store that holds them "
            "can't be asked."
        ),
        directives=[cost(10), page_size()],
    )
    async def logs(
        self,
        info: Info,
        source: Annotated[str | None, argument("Key of a LogSource; the server's own log if left out.")] = None,
        from_line: Annotated[
            int | None, argument("Line number to start from; with `first`, and not together with a cursor.")
        ] = None,
        plain: Annotated[bool, argument("True to leave terminal escape sequences out of the text.")] = False,
        first: Annotated[int | None, argument("Return the first this many, 1 to 1,000.")] = None,
        after: Annotated[str | None, argument("Continue after this cursor.")] = None,
        last: Annotated[int | None, argument("Return the last this many, 1 to 1,000.")] = None,
        before: Annotated[str | None, argument("Stop before this cursor.")] = None,
    ) -> LogLineConnection | None:
        key, page = source or self.mirrored.log, PageArgs(first, after, last, before)
        return await log_page(of_info(info), self.mirrored.key, key, page, from_line, plain=plain)

    @strawberry.field(  # type: ignore[misc]  # the interface has it as a value
        description="What the caller may do with it right now, for enabling buttons."
    )
    def allowed_actions(self, info: Info) -> list[Action]:
        return list(_allowed(self.mirrored, of_info(info).caller))

    @strawberry.field(  # type: ignore[misc]  # the interface has it without a resolver
        description="Address of its page in the dashboard, or null if the installation has no public address."
    )
    def web_url(self, info: Info) -> str | None:
        base = of_info(info).services.web_url
        return f"{base.rstrip('/')}/playgrounds/{self.mirrored.id}" if base else None

    made: ClassVar[Made] = {
        "name": "mirrored.spec.machine.name",
        "project": "mirrored.spec.machine.project",
        "fleet": "mirrored.spec.machine.fleet",
        "labels": lambda this: [Label.of(label) for label in this.mirrored.spec.machine.labels],
        "gpus": "mirrored.spec.machine.gpus",
        "model": "mirrored.spec.model",
        "served_model_name": "mirrored.spec.served_model_name",
        "image": "mirrored.spec.machine.image",
        "series": "mirrored.spec.machine.primary.series",
        "args": lambda this: list(this.mirrored.spec.args),
        "env": lambda this: [EnvVar.of(variable) for variable in this.mirrored.spec.machine.env],
        "created_by": lambda this: Actor.of(this.mirrored.created_by),
        "reason": lambda this: Reason.maybe(this.mirrored.reason),
        "clocks": lambda this: [Clock.of(clock) for clock in this.mirrored.clocks],
        "usage": lambda this: PlaygroundUsage.of(this.mirrored.usage),
        "observation": lambda this: Observation.of(this.mirrored, this.mirrored.spec.machine.fleet),
    }

    @classmethod
    def of(cls, row: domain.Playground) -> Self:
        return mirror(cls, row)


def _allowed(row: domain.Playground, caller: Caller) -> Iterator[Action]:
    manages = Permission.MANAGE_PLAYGROUNDS in caller.permissions
    if manages and row.answers:
        yield Action.CHAT
        yield Action.EXTEND
    if manages and not row.ended:
        yield Action.STOP
    if Permission.READ_LOGS in caller.permissions:
        yield Action.READ_LOGS


@strawberry.type(description="A playground and its cursor.", directives=[cost(0)])
class PlaygroundEdge:
    cursor: str = strawberry.field(description="Cursor of this playground.")
    node: Playground = strawberry.field(description="The playground.")


@strawberry.type(description="A page of playgrounds.")
class PlaygroundConnection:
    edges: list[PlaygroundEdge] = strawberry.field(description="The playgrounds with their cursors.")
    nodes: list[Playground] = strawberry.field(description="The playgrounds alone.")
    page_info: PageInfo = strawberry.field(description="Where the page lies.")

    @classmethod
    def of(cls, page: Page[domain.Playground]) -> Self:
        nodes = [Playground.of(row) for _, row in page.rows]
        cursors = [row_cursor(key) for key, _ in page.rows]
        edges = [PlaygroundEdge(cursor=cursor, node=node) for cursor, node in zip(cursors, nodes, strict=True)]
        return cls(edges=edges, nodes=nodes, page_info=page_info(page))
