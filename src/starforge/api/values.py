"""Small values that many types of the schema hold."""

from datetime import datetime
from typing import ClassVar, Self

import strawberry
from strawberry import Info

from starforge.api.capacity.heard import Heard
from starforge.api.context import of_info
from starforge.api.directives import cost, list_size
from starforge.api.enums import ClockSource, Freshness
from starforge.api.mirror import Made, Mirror, mirror
from starforge.domain import deadlines, job, ports, reason, spec
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.job import ActorKind, JobState
from starforge.domain.reason import EvidenceSource, ReasonCode, ReasonOwner


@strawberry.type(description="A person, token or part of the platform that does something.")
class Actor(Mirror):
    name: str = strawberry.field(description="Name to show.")
    kind: ActorKind = strawberry.field(description="What it is.")

    @classmethod
    def of(cls, row: job.Actor) -> Self:
        return mirror(cls, row)


@strawberry.type(description="A key and value given by the creator.")
class Label(Mirror):
    key: str = strawberry.field(description="Key, at most 63 characters.")
    value: str = strawberry.field(description="Value, at most 63 characters.")

    @classmethod
    def of(cls, row: spec.Label) -> Self:
        return mirror(cls, row)


@strawberry.type(description="A Kubernetes object by name.")
class ObjectRef(Mirror):
    kind: str = strawberry.field(description="Kind, for example Pod.")
    name: str = strawberry.field(description="Name.")
    namespace: str | None = strawberry.field(description="Namespace, or null for objects that have none.")
    uid: str | None = strawberry.field(description="Uid, or null if never seen.")

    @classmethod
    def of(cls, row: reason.ObjectRef) -> Self:
        return mirror(cls, row)


@strawberry.type(description="One observation that supports a reason.")
class Evidence(Mirror):
    source: EvidenceSource = strawberry.field(description="What kind of observation it is.")
    object: ObjectRef | None = strawberry.field(
        description=("Object it was made on, or null if on none in the cluster.")
    )
    path: str | None = strawberry.field(
        description=(
            "Path of the field within the object, for example status.conditions[PodScheduled], or null if there is "
            "none."
        )
    )
    text: str = strawberry.field(description="What it says, as found, at most 2,000 characters.")
    observed_at: datetime = strawberry.field(description="When it was made.")

    made: ClassVar[Made] = {
        "object": lambda this: ObjectRef.of(this.mirrored.object) if this.mirrored.object else None,
    }

    @classmethod
    def of(cls, row: reason.Evidence) -> Self:
        return mirror(cls, row)


@strawberry.type(description="Why a workload waits or ended, in words, with whose move it is and what shows it.")
class Reason(Mirror):
    code: ReasonCode = strawberry.field(description="Code to act on.")
    message: str = strawberry.field(
        description=("Sentence for a person that says what happened, to what, with numbers.")
    )
    advice: str | None = strawberry.field(
        description=("Sentence that says what to do or what would free it; null if there is nothing to do.")
    )
    whose: ReasonOwner = strawberry.field(description="Who has to move.")
    retryable: bool = strawberry.field(
        description=(
            "True when a new attempt with nothing changed can succeed, as after a lost node; false when it would end "
            "the same way."
        )
    )
    since: datetime = strawberry.field(description="When this became the reason.")
    evidence: list[Evidence] = strawberry.field(
        description="What shows it, strongest first; at most 10.", directives=[list_size(5)]
    )

    made: ClassVar[Made] = {"evidence": lambda this: [Evidence.of(one) for one in this.mirrored.evidence]}

    @classmethod
    def of(cls, row: reason.Reason) -> Self:
        return mirror(cls, row)

    @classmethod
    def maybe(cls, row: reason.Reason | None) -> Self | None:
        return cls.of(row) if row else None


@strawberry.type(description="A clock that limits one part of a workload's life.")
class Clock(Mirror):
    kind: ClockKind = strawberry.field(description="What it limits.")
    state: ClockState = strawberry.field(description="Whether it runs.")
    limit_seconds: int | None = strawberry.field(description="Its limit in seconds; null if it is off.")
    source: ClockSource = strawberry.field(description="Where the limit comes from.")
    started_at: datetime | None = strawberry.field(description="When it started; null before.")
    due_at: datetime | None = strawberry.field(
        description=(
            "When it runs out, graces included; null unless it runs or ran out; count down from this and not from an "
            "age."
        )
    )
    ended_at: datetime | None = strawberry.field(description="When it was stopped or ran out; null before.")

    made: ClassVar[Made] = {"limit_seconds": "mirrored.limit_s", "source": lambda _: ClockSource.SPEC}

    @classmethod
    def of(cls, row: deadlines.Clock) -> Self:
        return mirror(cls, row)


@strawberry.type(description="How fresh what is shown is.")
class Observation(Mirror):
    fleet: strawberry.Private[str | None]
    freshness: Freshness = strawberry.field(description="Whether the cluster is being heard right now.")

    @strawberry.field(description=("When the cluster last told us something about this; null if never."))
    def observed_at(self, info: Info) -> datetime | None:
        if isinstance(self.mirrored, Heard):
            return self.mirrored.observed_at
        return of_info(info).observed_at(self.mirrored, self.fleet)

    stale_since: datetime | None = strawberry.field(description=("Since when it can't be heard; null while it can."))
    problem: Reason | None = strawberry.field(description="Why it can't be heard; null while it can.")

    made: ClassVar[Made] = {
        "freshness": lambda this: freshness(this.mirrored),
        "problem": lambda this: Reason.maybe(_outage(this.mirrored)),
    }

    @classmethod
    def of(cls, row: job.Attempt | Heard, fleet: str | None = None) -> Self:
        return mirror(cls, row, fleet=fleet)


@strawberry.type(description="A request to cancel.")
class Cancellation(Mirror):
    requested_at: datetime = strawberry.field(description="When it was asked for.")
    requested_by: Actor = strawberry.field(description="Who asked.")
    note: str | None = strawberry.field(description="Why, as given, or null if not.")
    grace_until: datetime | None = strawberry.field(
        description=("When the grace is over and Pods are removed; null if the command was not running.")
    )

    made: ClassVar[Made] = {"requested_by": lambda this: Actor.of(this.mirrored.requested_by)}

    @classmethod
    def of(cls, row: job.Cancellation) -> Self:
        return mirror(cls, row)


@strawberry.type(description="A stay in one state.")
class StateSpan:
    state: JobState = strawberry.field(description="The state.")
    attempt: int = strawberry.field(description="Attempt it belongs to, from 1.")
    entered_at: datetime = strawberry.field(description="When the state was entered.")
    left_at: datetime | None = strawberry.field(description="When it was left; null while it lasts.")

    @classmethod
    def of(cls, row: job.StateSpan, attempt: int) -> Self:
        return mirror(cls, row, attempt=attempt)


@strawberry.type(description="An HTTP header.")
class HttpHeader:
    name: str = strawberry.field(description="Name.")
    value: str = strawberry.field(description="Value.")


@strawberry.type(description="A request that anybody who has it can make for a while; treat it as a secret.")
class SignedRequest:
    method: str = strawberry.field(description="HTTP method, GET or PUT.")
    url: str = strawberry.field(description="Address with its signature.")
    headers: list[HttpHeader] = strawberry.field(description="Headers to send exactly as given.")
    expires_at: datetime = strawberry.field(description="When it stops working.")

    @classmethod
    def of(cls, row: ports.Signed) -> Self:
        return mirror(cls, row, headers=[HttpHeader(name=name, value=value) for name, value in row.headers])


@strawberry.type(description="Where a page lies in its connection.", directives=[cost(0)])
class PageInfo:
    has_next_page: bool = strawberry.field(description="Whether there are more rows after this page.")
    has_previous_page: bool = strawberry.field(description="Whether there are more rows before this page.")
    start_cursor: str | None = strawberry.field(description=("Cursor of the first row, or null if the page is empty."))
    end_cursor: str | None = strawberry.field(description="Cursor of the last row, or null if the page is empty.")


def _outage(row: job.Attempt | Heard) -> reason.Reason | None:
    if isinstance(row, Heard):
        return row.problem
    if row.stale_since and row.stale_problem:
        return reason.reason(row.stale_code, row.stale_problem, row.stale_since)
    return None


def freshness(row: job.Attempt | Heard) -> Freshness:
    if isinstance(row, Heard):
        return row.freshness
    if row.released_at and row.ended_at:
        return Freshness.FINAL
    if row.launched_at is None:
        return Freshness.NEVER
    return Freshness.STALE if row.stale_since else Freshness.LIVE
