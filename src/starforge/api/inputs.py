"""What clients send about jobs, and what it is in the domain."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypeVar

import strawberry

from starforge.api.enums import OrderDirection
from starforge.api.mirror import mirror
from starforge.api.paging import bad_input
from starforge.api.scalars import BigInt
from starforge.domain import queries, spec
from starforge.domain.actions.submit import Submission
from starforge.domain.actions.submit_many import BatchErrorPolicy
from starforge.domain.capsule import InlineFile
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import Digest, JobId
from starforge.domain.queries import JobOrderField, LabelOperator
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import EventType, Severity


@strawberry.input(description="A key of a Kubernetes Secret in the fleet's namespace.")
class SecretKeyInput:
    name: str = strawberry.field(description="Name of the Secret.")
    key: str = strawberry.field(description="Key within it.")


@strawberry.input(description="An environment variable: exactly one of value and secret.")
class EnvVarInput:
    name: str = strawberry.field(description="Name.")
    value: str | None = strawberry.field(
        description=("Value, stored and shown in clear: never put a secret here."), default=None
    )
    secret: SecretKeyInput | None = strawberry.field(
        description="Key of a Secret to take the value from.", default=None
    )

    def var(self) -> spec.EnvVar:
        secret = spec.SecretKey(self.secret.name, self.secret.key) if self.secret else None
        return spec.EnvVar(self.name, self.value, secret)


@strawberry.input(description="A key and value for people and filters.")
class LabelInput:
    key: str = strawberry.field(description="Key, 1 to 63 characters.")
    value: str = strawberry.field(description="Value, at most 63 characters.")


@strawberry.input(
    description=(
        "Limits of the three clocks in seconds: the fleet's default where null or left out, and 0 for no limit where "
        "the fleet allows it."
    )
)
class DeadlinesInput:
    queue_seconds: int | None = strawberry.field(description="Longest wait for a place, in seconds.", default=None)
    pre_running_seconds: int | None = strawberry.field(
        description=("Longest time from having a RayJob to running, in seconds."), default=None
    )
    active_seconds: int | None = strawberry.field(description="Longest run, in seconds.", default=None)


@strawberry.input(description="A group of equal machines.")
class PoolInput:
    name: str = strawberry.field(
        description=(
            "Name, unique within the job, lower case, 1 to 20 characters; also the Ray custom resource that pins work"
            " to the pool."
        )
    )
    series: str = strawberry.field(description="GPU series, a value of the fleet's node label.")
    machines: int = strawberry.field(description="Number of machines, 1 or more.")
    gpus_per_machine: int = strawberry.field(description="GPUs of each machine, 0 or more.")
    cpus: int | None = strawberry.field(
        description=("CPU cores of each machine; the fleet's default if left out."), default=None
    )
    memory: str | None = strawberry.field(
        description=(
            "Memory of each machine as a Kubernetes quantity, for example 64Gi; the fleet's default if left out."
        ),
        default=None,
    )
    shm_size: str | None = strawberry.field(
        description=(
            "Size of /dev/shm as a Kubernetes quantity, counted within the memory; the fleet's default if left out."
        ),
        default=None,
    )
    image: str | None = strawberry.field(
        description="Container image of this pool; the job's if left out.", default=None
    )


@strawberry.input(description="What to run.")
class JobSpecInput:
    name: str = strawberry.field(description="Name for people, 1 to 100 characters; need not be unique.")
    project: str | None = strawberry.field(description="Project; the caller's own if left out.", default=None)
    fleet: str | None = strawberry.field(description="Fleet; the first that fits if left out.", default=None)
    description: str | None = strawberry.field(
        description="Free text about the job, at most 2,000 characters.", default=None
    )
    image: str | None = strawberry.field(description="Container image; the fleet's default if left out.", default=None)
    command: list[str] = strawberry.field(
        description=("Command and arguments, run in the code's directory without a shell.")
    )
    env: list[EnvVarInput] | None = strawberry.field(description="Environment variables, 200 at most.", default=None)
    pools: list[PoolInput] = strawberry.field(
        description=("Pools, 1 to 16; the first is the primary one, whose machine zero is the Ray head.")
    )
    deadlines: DeadlinesInput | None = strawberry.field(
        description=("Limits of the three clocks; the fleet's defaults if left out."), default=None
    )
    labels: list[LabelInput] | None = strawberry.field(description="Labels, 32 at most.", default=None)
    priority: int | None = strawberry.field(
        description="Priority, -100 to 100, higher first; 0 if left out.", default=None
    )
    cancel_grace_seconds: int | None = strawberry.field(
        description=("Seconds between SIGTERM and removal when canceled, 0 to 3,600; the fleet's default if left out."),
        default=None,
    )
    queue: str | None = strawberry.field(
        description=("Queue to wait in, a Kueue LocalQueue where the fleet uses Kueue; the fleet's own if left out."),
        default=None,
    )

    def draft(self) -> spec.SpecDraft:
        """The spec as the domain takes it: not checked yet."""
        return mirror(
            spec.SpecDraft,
            self,
            command=tuple(self.command),
            env=tuple(var.var() for var in self.env or ()),
            pools=tuple(mirror(spec.PoolDraft, pool) for pool in self.pools),
            deadlines=mirror(spec.DeadlinesDraft, self.deadlines) if self.deadlines else spec.DeadlinesDraft(),
            labels=tuple(spec.Label(label.key, label.value) for label in self.labels or ()),
        )


@strawberry.input(description="A file of inline code.")
class CodeFileInput:
    path: str = strawberry.field(description=("Path below the code's directory, relative and with forward slashes."))
    content: str = strawberry.field(description="Content as text; other content goes by `prepareCode`.")
    executable: bool | None = strawberry.field(description="True to let it be executed.", default=None)


@strawberry.input(description="Code by digest or inline: exactly one of the two.", one_of=True)
class CodeInput:
    digest: strawberry.Maybe[str] = strawberry.field(
        description=("Digest of code that was uploaded by `prepareCode` or used before.")
    )
    files: strawberry.Maybe[list[CodeFileInput]] = strawberry.field(description="The files themselves, for small code.")

    def code(self) -> Digest | tuple[InlineFile, ...]:
        """The digest, or the files as the domain knows them."""
        if self.digest is not None:
            return Digest(self.digest.value)
        files = self.files.value if self.files else []
        return tuple(InlineFile(file.path, file.content, bool(file.executable)) for file in files)


@strawberry.input(description="A job to submit.")
class SubmitJobInput:
    spec: JobSpecInput = strawberry.field(description="What to run.")
    code: CodeInput = strawberry.field(description="The code it runs.")
    idempotency_key: str | None = strawberry.field(
        description=("Makes the call safe to repeat: same key and body, same job; same key and other body, CONFLICT."),
        default=None,
    )
    allow_unsatisfiable: bool = strawberry.field(
        description="True to accept a job that no fleet could place today, because nodes will come.", default=False
    )

    def submission(self) -> Submission:
        return Submission(self.spec.draft(), self.code.code(), self.idempotency_key, self.allow_unsatisfiable)


@strawberry.input(description="Jobs to submit together.")
class SubmitJobsInput:
    items: list[SubmitJobInput] = strawberry.field(
        description=(
            "The jobs, 1 to 100; give code by digest, and each its own idempotency key, so that the batch can be sent "
            "again after a cut."
        )
    )
    error_policy: BatchErrorPolicy = strawberry.field(
        description="What to do when some are refused.", default=BatchErrorPolicy.INDEPENDENT
    )


@strawberry.input(description="Code that is about to be used.")
class PrepareCodeInput:
    digest: str = strawberry.field(description=("sha256 of the code's canonical manifest, in lower-case hexadecimal."))
    transport_sha256: str = strawberry.field(description=("sha256 of the zip to be sent, in lower-case hexadecimal."))
    bytes: BigInt = strawberry.field(description="Size of that zip in bytes.")
    files: int = strawberry.field(description="Number of files in it.")


@strawberry.input(description="A condition on one label.")
class LabelSelectorInput:
    key: str = strawberry.field(description="Key.")
    operator: LabelOperator = strawberry.field(
        description="How to compare; equality if left out.", default=LabelOperator.IN
    )
    values: list[str] | None = strawberry.field(
        description=("Values to compare with; required with IN and NOT_IN and refused otherwise."), default=None
    )

    def selector(self) -> queries.LabelSelector:
        """The condition; a GraphQL error if its values do not go with its operator."""
        needed = self.operator in (LabelOperator.IN, LabelOperator.NOT_IN)
        if needed != bool(self.values):
            raise bad_input(f"A label condition with {self.operator} takes {'values' if needed else 'no values'}.")
        return queries.LabelSelector(self.key, self.operator, tuple(self.values or ()))


@strawberry.input(
    description=("Which jobs: all given fields must match, one of a list is enough, and an empty list matches nothing.")
)
class JobFilter:
    ids: list[strawberry.ID] | None = strawberry.field(description="Any of these ids, 100 at most.", default=None)
    states: list[JobState] | None = strawberry.field(description="Any of these states.", default=None)
    active: bool | None = strawberry.field(
        description=("True for jobs that have not ended, false for those that have."), default=None
    )
    outcomes: list[JobOutcome] | None = strawberry.field(description="Any of these outcomes.", default=None)
    reasons: list[ReasonCode] | None = strawberry.field(
        description=("Any of these codes as the reason, of a wait, of an end or of a blocked teardown."), default=None
    )
    projects: list[str] | None = strawberry.field(description="Any of these projects.", default=None)
    fleets: list[str] | None = strawberry.field(description="On any of these fleets.", default=None)
    series: list[str] | None = strawberry.field(description="With a pool of any of these GPU series.", default=None)
    labels: list[LabelSelectorInput] | None = strawberry.field(
        description=("All of these label conditions, 10 at most."), default=None
    )
    name_prefix: str | None = strawberry.field(
        description=("Name starts with this, upper and lower case told apart."), default=None
    )
    created_by: list[str] | None = strawberry.field(
        description="Created by any of these actors, by name.", default=None
    )
    created_after: datetime | None = strawberry.field(description="Created at or after this time.", default=None)
    created_before: datetime | None = strawberry.field(description="Created before this time.", default=None)
    ended_after: datetime | None = strawberry.field(description="Ended at or after this time.", default=None)
    ended_before: datetime | None = strawberry.field(description="Ended before this time.", default=None)
    idempotency_keys: list[str] | None = strawberry.field(
        description=(
            "Submitted by the caller with any of these idempotency keys, 100 at most, so that a script can find what "
            "it already submitted."
        ),
        default=None,
    )
    code_digest: str | None = strawberry.field(description="Running code with this digest.", default=None)

    def which(self) -> queries.JobFilter:
        """The filter as the domain has it; a GraphQL error if it is too long."""
        _at_most(self.ids, 100, "ids")
        _at_most(self.idempotency_keys, 100, "idempotencyKeys")
        _at_most(self.labels, 10, "labels")
        return mirror(
            queries.JobFilter,
            self,
            ids=None if self.ids is None else tuple(JobId(str(one)) for one in self.ids),
            code=Digest(self.code_digest) if self.code_digest else None,
            labels=tuple(label.selector() for label in self.labels or ()),
            **{name: _tuple(getattr(self, name)) for name in _LISTS},
        )


@strawberry.input(description="Order of jobs; ties are broken by id.")
class JobOrder:
    field: JobOrderField = strawberry.field(description="What to order by.", default=JobOrderField.CREATED_AT)
    direction: OrderDirection = strawberry.field(
        description="Which way; nulls come last either way.", default=OrderDirection.DESC
    )

    def order(self) -> queries.JobOrder:
        return queries.JobOrder(self.field, self.direction is OrderDirection.DESC)


@strawberry.input(
    description=(
        "Which events: all given fields must match, one of a list is enough, and an empty list matches nothing."
    )
)
class EventFilter:
    workloads: list[strawberry.ID] | None = strawberry.field(
        description=("Of any of these jobs or playgrounds, 100 at most."), default=None
    )
    types: list[EventType] | None = strawberry.field(description="Of any of these types.", default=None)
    min_severity: Severity | None = strawberry.field(description="At least this severe.", default=None)
    projects: list[str] | None = strawberry.field(description="Of any of these projects.", default=None)
    fleets: list[str] | None = strawberry.field(description="Of any of these fleets.", default=None)
    attempt: int | None = strawberry.field(description="Of this attempt, from 1.", default=None)
    kubernetes_reasons: list[str] | None = strawberry.field(
        description=("Kubernetes Events with any of these reasons, for example FailedScheduling."), default=None
    )
    since: datetime | None = strawberry.field(description="Last happened at or after this time.", default=None)
    until: datetime | None = strawberry.field(description="First happened before this time.", default=None)

    def which(self, job: str | None = None) -> queries.EventFilter:
        """The filter as the domain has it, of one job if that is given."""
        _at_most(self.workloads, 100, "workloads")
        jobs = None if self.workloads is None else tuple(JobId(str(one)) for one in self.workloads)
        if job is not None:
            jobs = (JobId(job),) if jobs is None or job in jobs else ()
        return mirror(
            queries.EventFilter,
            self,
            jobs=jobs,
            types=_tuple(self.types),
            projects=_tuple(self.projects),
            fleets=_tuple(self.fleets),
            kubernetes_reasons=_tuple(self.kubernetes_reasons),
        )


_LISTS = ("states", "outcomes", "reasons", "projects", "fleets", "series", "created_by", "idempotency_keys")
Item = TypeVar("Item")


def _tuple(items: Iterable[Item] | None) -> tuple[Item, ...] | None:
    return None if items is None else tuple(items)


def _at_most(items: list[Item] | None, most: int, name: str) -> None:
    if items is not None and len(items) > most:
        raise bad_input(f"`{name}` has {len(items)} entries; {most} are the most.")
