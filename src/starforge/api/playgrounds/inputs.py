"""What is asked for of playgrounds."""

import strawberry

from starforge.api.inputs import EnvVarInput, LabelInput, at_most, tuple_of
from starforge.domain import queries
from starforge.domain.names import JobId, PlaygroundId
from starforge.domain.playground import PlaygroundState
from starforge.domain.playground_spec import PlaygroundDraft
from starforge.domain.spec import Label


@strawberry.input(
    description=(
        "Which playgrounds: all given fields must match, one of a list is enough, and an empty list matches nothing."
    )
)
class PlaygroundFilter:
    ids: list[strawberry.ID] | None = strawberry.field(description="Any of these ids, 100 at most.", default=None)
    states: list[PlaygroundState] | None = strawberry.field(description="Any of these states.", default=None)
    active: bool | None = strawberry.field(
        description="True for those that have not ended, false for those that have.", default=None
    )
    projects: list[str] | None = strawberry.field(description="Any of these projects.", default=None)
    fleets: list[str] | None = strawberry.field(description="On any of these fleets.", default=None)
    created_by: list[str] | None = strawberry.field(
        description="Created by any of these actors, by name.", default=None
    )
    from_job: strawberry.ID | None = strawberry.field(description="Serving a result of this job.", default=None)

    def which(self) -> queries.PlaygroundFilter:
        at_most(self.ids, 100, "ids")
        return queries.PlaygroundFilter(
            ids=None if self.ids is None else tuple(PlaygroundId(str(one)) for one in self.ids),
            states=tuple_of(self.states),
            active=self.active,
            projects=tuple_of(self.projects),
            fleets=tuple_of(self.fleets),
            created_by=tuple_of(self.created_by),
            from_job=JobId(str(self.from_job)) if self.from_job else None,
        )


@strawberry.input(description="A playground to create.")
class CreatePlaygroundInput:
    name: str = strawberry.field(description="Name for people, 1 to 100 characters; need not be unique.")
    project: str | None = strawberry.field(description="Project; the caller's own if left out.", default=None)
    fleet: str | None = strawberry.field(description="Fleet; the first that fits if left out.", default=None)
    model: str | None = strawberry.field(
        description=(
            "Model to serve: a hub name, or a path below the storage root; may be left out only with `fromJob`."
        ),
        default=None,
    )
    from_job: strawberry.ID | None = strawberry.field(
        description=(
            "Opaque id of a job whose result to serve; `model` is then a path below its output, or its last checkpoint "
            "if left out."
        ),
        default=None,
    )
    image: str | None = strawberry.field(description="Container image; the fleet's default if left out.", default=None)
    series: str = strawberry.field(description="GPU series, a value of the fleet's node label.")
    gpus: int = strawberry.field(description="GPUs, 0 or more.")
    args: list[str] | None = strawberry.field(
        description="Further arguments of `vllm serve`, 100 at most; those that StarForge sets itself are refused.",
        default=None,
    )
    env: list[EnvVarInput] | None = strawberry.field(description="Environment variables, 200 at most.", default=None)
    labels: list[LabelInput] | None = strawberry.field(description="Labels, 32 at most.", default=None)
    ttl_seconds: int | None = strawberry.field(
        description=(
            "Time to live in seconds from READY, 60 to the limit in `viewer.limits.playgroundSeconds`; the fleet's "
            "default if left out."
        ),
        default=None,
    )
    idle_seconds: int | None = strawberry.field(
        description=(
            "Seconds without a request after which it is stopped, 60 or more; the fleet's default if left out."
        ),
        default=None,
    )
    idempotency_key: str | None = strawberry.field(
        description=(
            "Makes the call safe to repeat: same key and body, same playground; same key and other body, CONFLICT."
        ),
        default=None,
    )

    def draft(self) -> PlaygroundDraft:
        return PlaygroundDraft(
            name=self.name,
            series=self.series,
            gpus=self.gpus,
            model=self.model,
            project=self.project,
            fleet=self.fleet,
            image=self.image,
            args=tuple(self.args or ()),
            env=tuple(variable.var() for variable in self.env or ()),
            labels=tuple(Label(label.key, label.value) for label in self.labels or ()),
            ttl_seconds=self.ttl_seconds,
            idle_seconds=self.idle_seconds,
            from_job=JobId(str(self.from_job)) if self.from_job else None,
        )
