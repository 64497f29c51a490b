"""Interfaces that jobs, and later playgrounds, share."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import of_info
from starforge.api.directives import list_size, page_size
from starforge.api.paging import PageArgs
from starforge.api.values import Actor, Clock, Label, Observation, Reason
from starforge.domain.timeline import Action

if TYPE_CHECKING:
    from starforge.api.events.types import EventConnection
    from starforge.api.inputs import EventFilter
    from starforge.api.jobs.cluster import Pod
    from starforge.api.logs.types import LogSource

LazyEvents = Annotated["EventConnection", strawberry.lazy("starforge.api.events.types")]
LazyEventFilter = Annotated["EventFilter", strawberry.lazy("starforge.api.inputs")]
LazyPod = Annotated["Pod", strawberry.lazy("starforge.api.jobs.cluster")]
LazyLogSource = Annotated["LogSource", strawberry.lazy("starforge.api.logs.types")]


@strawberry.interface(
    description="An object that can be fetched again by its id (Relay's Node, not a Kubernetes node: that is GpuNode)."
)
class Node:
    id: strawberry.ID = strawberry.field(description="Opaque id, unique in this installation and never reused.")


async def workload_events(
    self: "Workload",
    info: Info,
    filter: Annotated[LazyEventFilter | None, argument("Which of its events; all if left out.")] = None,  # noqa: A002
    first: Annotated[int | None, argument("Return the first this many, 1 to 100.")] = None,
    after: Annotated[str | None, argument("Continue after this cursor.")] = None,
    last: Annotated[int | None, argument("Return the last this many, 1 to 100.")] = None,
    before: Annotated[str | None, argument("Stop before this cursor.")] = None,
) -> LazyEvents:
    from starforge.api.events.pages import event_page

    return await event_page(of_info(info), filter, PageArgs(first, after, last, before), job=str(self.id))


@strawberry.interface(description="Something that holds GPUs for somebody: a job or a playground.")
class Workload(Node):
    name: str = strawberry.field(description="Name given by its creator; need not be unique.")
    project: str = strawberry.field(description="Project it belongs to.")
    fleet: str | None = strawberry.field(description="Name of the fleet it is on, or null until one is chosen.")
    labels: list[Label] = strawberry.field(description="Labels given by its creator, in key order.")
    gpus: int = strawberry.field(description="GPUs it asks for in all, logical ones included.")
    ended: bool = strawberry.field(
        description=(
            "Whether it is in an end state; `state` itself differs between the kinds, so give it an alias where you "
            "ask for both."
        )
    )
    reason: Reason | None = strawberry.field(
        description=(
            "Why it is where it is: what holds it while it waits, why it ended once that is known; null when there is "
            "nothing to explain."
        )
    )
    revision: int = strawberry.field(
        description="Grows by one with every change, so that the higher one is the newer one."
    )
    created_at: datetime = strawberry.field(description="When it was created.")
    created_by: Actor = strawberry.field(description="Who created it.")
    released_at: datetime | None = strawberry.field(
        description="When the last of its cluster objects was seen to be gone; null until then."
    )
    observed_at: datetime | None = strawberry.field(
        description="When the cluster last told us about it; null until it did."
    )
    observation: Observation = strawberry.field(
        description="How fresh what is shown here is, and why it is not fresher."
    )
    clocks: list[Clock] = strawberry.field(description="Its clocks with their due times.")
    pods: list[LazyPod] = strawberry.field(
        description="Its Pods, or processes on a fleet without Pods; at most 1,000.", directives=[list_size(20)]
    )
    log_sources: list[LazyLogSource] = strawberry.field(
        description="Where its log lines come from; at most 1,000.", directives=[list_size(20)]
    )
    allowed_actions: list[Action] = strawberry.field(
        description="What the caller may do with it right now, for enabling buttons."
    )

    web_url: str | None = strawberry.field(
        description="Address of its page in the dashboard, or null if the installation has no public address."
    )
    events: LazyEvents = strawberry.field(
        description="Its timeline: our events and Kubernetes Events in one, oldest first.",
        resolver=workload_events,
        directives=[page_size()],
    )
