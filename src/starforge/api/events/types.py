"""The timeline as events of the schema."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import strawberry
from strawberry import Info

from starforge.api.context import Context, of_info
from starforge.api.directives import cost
from starforge.api.enums import KubernetesEventType
from starforge.api.interfaces import Node, Workload
from starforge.api.mirror import mirror
from starforge.api.values import Actor, Clock, ObjectRef, PageInfo, Reason
from starforge.domain import timeline
from starforge.domain.job import JobState
from starforge.domain.logs import LogState
from starforge.domain.names import RunKey
from starforge.domain.observation import PodPhase
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.teardown import TeardownState
from starforge.domain.timeline import Action, CommandKind, EventType, Severity

if TYPE_CHECKING:
    from starforge.api.jobs.cluster import Pod
    from starforge.api.logs.types import LogSource

EventT = TypeVar("EventT", bound="Event")
LazyPod = Annotated["Pod", strawberry.lazy("starforge.api.jobs.cluster")]
LazyLogSource = Annotated["LogSource", strawberry.lazy("starforge.api.logs.types")]


@strawberry.interface(
    description=("An entry of a timeline; these fields are enough to draw any entry, also of kinds added later.")
)
class Event(Node):
    run: strawberry.Private[RunKey | None]
    id: strawberry.ID = strawberry.field(
        description="Opaque id; a repeat of the same Kubernetes Event keeps it and raises `count`, so replace by id."
    )
    type: EventType = strawberry.field(description="What it is about.")
    severity: Severity = strawberry.field(description="How much attention it deserves.")
    message: str = strawberry.field(description="Sentence for a person.")
    count: int = strawberry.field(description="How often it happened so far.")
    first_at: datetime = strawberry.field(description="When it happened first.")
    last_at: datetime = strawberry.field(description="When it happened last.")
    own_fleet: strawberry.Private[str | None]

    @strawberry.field(description="Fleet it belongs to, or null if to none.")
    async def fleet(self, info: Info) -> str | None:
        if self.own_fleet or self.run is None:
            return self.own_fleet
        row = await of_info(info).loaders.jobs.load(self.run.job)
        return row.spec.fleet if row else None

    @strawberry.field(description=("Job or playground it belongs to, or null if to none."))
    async def workload(self, info: Info) -> Workload | None:
        from starforge.api.jobs.types import Job

        row = await of_info(info).loaders.jobs.load(self.run.job) if self.run else None
        return Job.of(row) if row else None

    attempt: int | None = strawberry.field(description="Attempt it belongs to, from 1, or null if to none.")


@strawberry.type(description="A job came into another state.")
class JobStateEvent(Event):
    job_state: JobState = strawberry.field(description="The state after.")
    job_state_before: JobState | None = strawberry.field(description="The state before; null at the start.")
    reason: Reason | None = strawberry.field(description="Why; null when there is nothing to explain.")


@strawberry.type(description="Another reason holds a workload, or none any more.")
class ReasonEvent(Event):
    reason: Reason | None = strawberry.field(description="The reason now; null when nothing holds it.")


@strawberry.type(description="Somebody asked for something.")
class ActionEvent(Event):
    action: Action = strawberry.field(description="What was asked for.")
    actor: Actor = strawberry.field(description="Who asked.")
    note: str | None = strawberry.field(description="Why, as given; null if not.")


@strawberry.type(description="A clock started, stopped, got a grace or ran out.")
class ClockEvent(Event):
    clock: Clock = strawberry.field(description="The clock after that.")


@strawberry.type(description="A Pod appeared, changed phase, restarted or went.")
class PodEvent(Event):
    pod_uid: strawberry.Private[str | None]

    @strawberry.field(description="The Pod as it is now; null if its record is gone.")
    async def pod(self, info: Info) -> LazyPod | None:
        return await _pod(of_info(info), self.run, self.pod_uid)

    phase: PodPhase = strawberry.field(description="Its phase at that time.")


@strawberry.type(description="A log was opened, closed or archived, or lines were lost.")
class LogEvent(Event):
    source_key: strawberry.Private[str | None]

    @strawberry.field(description=("The log; null when it is about the archive as a whole."))
    async def source(self, info: Info) -> LazyLogSource | None:
        from starforge.api.logs.types import LogSource

        sources = await of_info(info).loaders.log_sources.load(self.run) if self.run else []
        found = next((source for source in sources if source.key == self.source_key), None)
        return LogSource.of(found) if found else None

    log_state: LogState | None = strawberry.field(
        description=("Its state at that time; null when it is about the archive as a whole.")
    )


@strawberry.type(description="Removal began, is blocked or is proven done.")
class TeardownEvent(Event):
    teardown_state: TeardownState = strawberry.field(description="How far it was.")


@strawberry.type(description="Work behind the scenes failed and is tried again, or was parked.")
class CommandEvent(Event):
    command: CommandKind = strawberry.field(description="What was to be done.")
    tries: int = strawberry.field(description="Tries so far.")
    parked: bool = strawberry.field(description="True when it will not be tried again by itself.")


@strawberry.type(description="A fleet can't be asked, or can again.")
class FleetEvent(Event):
    reason: Reason | None = strawberry.field(description="Why it can't be asked; null when it can again.")


@strawberry.type(description="A Kubernetes Event, copied on sight because the cluster keeps it for an hour only.")
class KubernetesEvent(Event):
    pod_uid: strawberry.Private[str | None]
    kubernetes_reason: str = strawberry.field(description="Its reason, as found, for example FailedScheduling.")
    kubernetes_type: KubernetesEventType = strawberry.field(
        description=("Whether Kubernetes calls it normal or a warning.")
    )
    object: ObjectRef = strawberry.field(description="The object it is about.")
    reported_by: str | None = strawberry.field(description=("What reported it, for example kubelet; null if not told."))

    @strawberry.field(description="The Pod it is about; null if about none that is known.")
    async def pod(self, info: Info) -> LazyPod | None:
        return await _pod(of_info(info), self.run, self.pod_uid)


async def _pod(context: Context, run: RunKey | None, uid: str | None) -> "Pod | None":
    from starforge.api.jobs.cluster import Pod

    pods = await context.loaders.pods.load(run) if run and uid else []
    found = next((pod for pod in pods if pod.uid == uid), None)
    return Pod.of(found, run) if found and run else None


def _state(detail: timeline.StateChanged) -> dict[str, Any]:
    return {"job_state": detail.after, "job_state_before": detail.before, "reason": Reason.maybe(detail.reason)}


def _fleet(detail: timeline.FleetChanged, at: datetime) -> dict[str, Any]:
    why = reason(ReasonCode.API_UNAVAILABLE, detail.problem, at) if detail.problem else None
    return {"reason": Reason.maybe(why)}


def _kubernetes(detail: timeline.KubernetesSeen) -> dict[str, Any]:
    return {
        "kubernetes_reason": detail.reason,
        "kubernetes_type": KubernetesEventType.WARNING if detail.warning else KubernetesEventType.NORMAL,
        "object": ObjectRef.of(detail.object),
        "reported_by": detail.reported_by,
        "pod_uid": detail.pod_uid,
    }


def event(row: timeline.Entry) -> Event:  # noqa: PLR0911  one line for each kind
    """An entry of the timeline as the event of its kind."""
    detail, at = row.detail, row.last_at
    if isinstance(detail, timeline.StateChanged):
        return _as(JobStateEvent, row, **_state(detail))
    if isinstance(detail, timeline.ReasonChanged):
        return _as(ReasonEvent, row, reason=Reason.maybe(detail.reason))
    if isinstance(detail, timeline.ActionRequested):
        return _as(ActionEvent, row, action=detail.action, actor=Actor.of(detail.actor), note=detail.note)
    if isinstance(detail, timeline.ClockChanged):
        return _as(ClockEvent, row, clock=Clock.of(detail.clock))
    if isinstance(detail, timeline.PodChanged):
        return _as(PodEvent, row, phase=detail.phase, pod_uid=detail.pod_uid)
    if isinstance(detail, timeline.LogChanged):
        return _as(LogEvent, row, source_key=detail.source, log_state=detail.state)
    if isinstance(detail, timeline.TeardownChanged):
        return _as(TeardownEvent, row, teardown_state=detail.teardown.state)
    if isinstance(detail, timeline.CommandFailed):
        return _as(CommandEvent, row, command=detail.command, tries=detail.tries, parked=detail.parked)
    if isinstance(detail, timeline.FleetChanged):
        return _as(FleetEvent, row, **_fleet(detail, at))
    return _as(KubernetesEvent, row, **_kubernetes(detail))


def _as(cls: type[EventT], row: timeline.Entry, **own: Any) -> EventT:
    return mirror(
        cls, row, id=strawberry.ID(row.id), attempt=row.run.attempt if row.run else None, own_fleet=row.fleet, **own
    )


@strawberry.type(description="An event and its cursor.", directives=[cost(0)])
class EventEdge:
    cursor: str = strawberry.field(description="Cursor of this event.")
    node: Event = strawberry.field(description="The event.")


@strawberry.type(description="A page of events.")
class EventConnection:
    edges: list[EventEdge] = strawberry.field(description="The events with their cursors.")
    nodes: list[Event] = strawberry.field(description="The events alone.")
    page_info: PageInfo = strawberry.field(description="Where the page lies.")
