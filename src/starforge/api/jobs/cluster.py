"""Pods, containers and RayJobs as last seen."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar, Self, TypeVar

import strawberry
from strawberry import Info

from starforge.api import ids
from starforge.api.context import Context, of_info
from starforge.api.directives import list_size
from starforge.api.enums import ContainerWaitingReason, RayJobDeploymentStatus, RayJobStatus, SubmissionMode
from starforge.api.interfaces import Node
from starforge.api.jobs.spec import PoolSpec
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.values import ObjectRef, Reason
from starforge.domain import job, observation, teardown
from starforge.domain.names import RunKey
from starforge.domain.observation import ContainerRole, ContainerState, PodPhase, PodRole, PodRuntime
from starforge.domain.teardown import TeardownState

if TYPE_CHECKING:
    from starforge.api.logs.types import LogSource

Known = TypeVar("Known", ContainerWaitingReason, RayJobStatus, RayJobDeploymentStatus)
LazyLogSource = Annotated["LogSource", strawberry.lazy("starforge.api.logs.types")]


@strawberry.type(description="How a container ended.")
class ContainerTermination(Mirror):
    exit_code: int = strawberry.field(description="Exit code.")
    signal: int | None = strawberry.field(description="Signal that ended it; null if none did or none was told.")
    reason: str | None = strawberry.field(
        description=("Reason as found, for example OOMKilled; null if there is none.")
    )
    message: str | None = strawberry.field(description="Message as found; null if there is none.")
    oom_killed: bool = strawberry.field(
        description=("True when the kernel ended it for using more memory than its limit.")
    )
    started_at: datetime | None = strawberry.field(description="When it started; null if not told.")
    finished_at: datetime | None = strawberry.field(description="When it ended; null if not told.")

    @classmethod
    def of(cls, row: observation.Termination | None) -> Self | None:
        return mirror(cls, row) if row else None


@strawberry.type(description="A container of a Pod.")
class Container(Mirror):
    name: str = strawberry.field(description="Name.")
    role: ContainerRole = strawberry.field(description="When it runs within the Pod.")
    image: str = strawberry.field(description="Image asked for.")
    state: ContainerState = strawberry.field(description="Where it is.")
    waiting_reason: ContainerWaitingReason | None = strawberry.field(description=("Why it waits; null unless WAITING."))
    waiting_message: str | None = strawberry.field(
        description=("The same reason and its message, as found; null unless WAITING.")
    )
    started_at: datetime | None = strawberry.field(description="When it started; null before.")
    ready: bool = strawberry.field(description="Whether it is ready.")
    restarts: int = strawberry.field(description="How often it was started again.")
    termination: ContainerTermination | None = strawberry.field(description=("How it ended; null unless TERMINATED."))
    previous_termination: ContainerTermination | None = strawberry.field(
        description=("How its run before this one ended; null if it never ran before.")
    )

    made: ClassVar[Made] = {
        "waiting_reason": lambda this: waiting_reason(this.mirrored.waiting_reason),
        "waiting_message": lambda this: _waiting_message(this.mirrored),
        "termination": lambda this: ContainerTermination.of(this.mirrored.termination),
        "previous_termination": lambda this: ContainerTermination.of(this.mirrored.previous),
    }

    @classmethod
    def of(cls, row: observation.ContainerView) -> Self:
        return mirror(cls, row)


@strawberry.type(description="A condition of a Pod.")
class PodCondition(Mirror):
    type: str = strawberry.field(description="Type, for example PodScheduled.")
    status: bool | None = strawberry.field(description="Whether it holds; null when Kubernetes says Unknown.")
    reason: str | None = strawberry.field(description="Short reason, as found; null if there is none.")
    message: str | None = strawberry.field(description="Longer message, as found; null if there is none.")
    changed_at: datetime | None = strawberry.field(description="When it last changed; null if not told.")


@strawberry.type(description="A Pod, or a process that stands for one on a fleet without Pods.")
class Pod(Node, Mirror):
    run: strawberry.Private[RunKey]
    name: str = strawberry.field(description="Name in the cluster.")
    uid: str = strawberry.field(description="Uid in the cluster, or the process's own identity.")
    namespace: str | None = strawberry.field(description="Namespace, or null for a process.")
    runtime: PodRuntime = strawberry.field(description="What it really is.")
    role: PodRole = strawberry.field(description="What it is for.")
    pool: str | None = strawberry.field(description="Pool it belongs to, or null if to none.")
    machine: int | None = strawberry.field(
        description=("Number of its machine within the pool, from 0, or null if it is none.")
    )
    attempt: int | None = strawberry.field(description=("Attempt it belongs to, from 1, or null for a playground."))
    phase: PodPhase = strawberry.field(description="Phase as Kubernetes tells it.")
    ready: bool = strawberry.field(description="Whether it is ready.")
    terminating: bool = strawberry.field(
        description=("True from the request to delete it until it is gone; it holds its GPUs all that time.")
    )
    waiting_reason: ContainerWaitingReason | None = strawberry.field(
        description=("Why its first waiting container waits; null if none waits.")
    )
    reason: str | None = strawberry.field(
        description=("Short reason given by Kubernetes, as found, for example Evicted; null if there is none.")
    )
    message: str | None = strawberry.field(
        description=("Longer message given by Kubernetes, as found; null if there is none.")
    )
    node_name: str | None = strawberry.field(description=("Name of the node it is on; null before it is scheduled."))
    gpus: int = strawberry.field(description="GPUs it asks for.")
    restarts: int = strawberry.field(description="Restarts of all its containers.")
    conditions: list[PodCondition] = strawberry.field(
        description="Its conditions; at most 20.", directives=[list_size(5)]
    )
    containers: list[Container] = strawberry.field(
        description="Its containers, init containers first.", directives=[list_size(3)]
    )

    @strawberry.field(description="Where its log lines come from.", directives=[list_size(3)])
    async def log_sources(self, info: Info) -> list[LazyLogSource]:
        from starforge.api.logs.types import LogSource

        sources = await of_info(info).loaders.log_sources.load(self.run)
        return [LogSource.of(source) for source in sources if source.pod == self.name]

    created_at: datetime = strawberry.field(description="When it was created.")
    scheduled_at: datetime | None = strawberry.field(description="When it got a node; null before.")
    started_at: datetime | None = strawberry.field(description="When its first container started; null before.")
    finished_at: datetime | None = strawberry.field(description="When its last container ended; null before.")
    deletion_requested_at: datetime | None = strawberry.field(
        description=("When its removal was asked for; null before.")
    )
    gone_at: datetime | None = strawberry.field(description="When it was seen to be gone; null before.")
    observed_at: datetime = strawberry.field(description="When it was last seen.")

    made: ClassVar[Made] = {
        "id": lambda this: ids.pod(this.run, this.mirrored.uid),
        "attempt": "run.attempt",
        "waiting_reason": lambda this: waiting_reason(_first_wait(this.mirrored)),
        "conditions": lambda this: [mirror(PodCondition, one) for one in this.mirrored.conditions[:20]],
        "containers": lambda this: [Container.of(one) for one in this.mirrored.containers],
    }

    @classmethod
    def of(cls, row: observation.PodView, run: RunKey) -> Self:
        return mirror(cls, row, run=run)


@strawberry.type(description="Pods by phase.")
class PodCounts:
    wanted: int = strawberry.field(description="Pods that should be there.")
    pending: int = strawberry.field(description=("Pods not yet on a node or whose containers have not all started."))
    running: int = strawberry.field(description="Pods that run.")
    ready: int = strawberry.field(description="Pods that run and are ready.")
    succeeded: int = strawberry.field(description="Pods whose containers all exited with 0.")
    failed: int = strawberry.field(description="Pods that ended in another way.")
    terminating: int = strawberry.field(description="Pods that are being removed and still hold their GPUs.")

    @classmethod
    def of(cls, wanted: int, pods: Sequence[observation.PodView]) -> Self:
        there = [pod for pod in pods if pod.gone_at is None]
        staying = [pod for pod in there if not pod.terminating]
        phases = [pod.phase for pod in staying]
        return cls(
            wanted=wanted,
            pending=phases.count(PodPhase.PENDING),
            running=phases.count(PodPhase.RUNNING),
            ready=sum(pod.ready for pod in staying),
            succeeded=phases.count(PodPhase.SUCCEEDED),
            failed=phases.count(PodPhase.FAILED) + phases.count(PodPhase.UNKNOWN),
            terminating=len(there) - len(staying),
        )


@strawberry.type(description="A RayJob as last seen in the cluster.")
class RayJob(Mirror):
    name: str = strawberry.field(description="Name.")
    namespace: str = strawberry.field(description="Namespace.")
    uid: str | None = strawberry.field(description="Uid, or null until it is known to exist.")
    ray_cluster_name: str | None = strawberry.field(description=("Name of its RayCluster; null before there is one."))
    submission_mode: SubmissionMode = strawberry.field(description="How the command is handed to Ray.")
    job_status: RayJobStatus | None = strawberry.field(
        description=("Status of the run as Ray tells it; null before there is one.")
    )
    job_deployment_status: RayJobDeploymentStatus | None = strawberry.field(
        description=("Status of the deployment as the operator tells it; null before there is one.")
    )
    reason: str | None = strawberry.field(
        description=("Reason given by the operator, as found; null if there is none.")
    )
    message: str | None = strawberry.field(
        description=("Message given by the operator, as found, with secrets removed; null if there is none.")
    )
    observed_at: datetime | None = strawberry.field(description="When it was last seen; null if never.")

    made: ClassVar[Made] = {
        "ray_cluster_name": "mirrored.ray_cluster",
        "submission_mode": lambda this: _submission_mode(this.mirrored),
        "job_status": lambda this: _known(RayJobStatus, this.mirrored.job_status),
        "job_deployment_status": lambda this: _known(RayJobDeploymentStatus, this.mirrored.deployment_status),
    }

    @classmethod
    def of(cls, row: observation.RayJobView | None) -> Self | None:
        return None if row is None else mirror(cls, row)


@strawberry.type(description="A cluster object that has yet to go.")
class RemainingObject(Mirror):
    object: ObjectRef = strawberry.field(description="The object.")
    deletion_requested_at: datetime | None = strawberry.field(
        description=("When its deletion was asked for; null before.")
    )
    finalizers: list[str] = strawberry.field(description="Finalizers that hold it.")

    made: ClassVar[Made] = {
        "object": lambda this: ObjectRef.of(this.mirrored.object),
        "finalizers": lambda this: list(this.mirrored.finalizers),
    }

    @classmethod
    def of(cls, row: teardown.RemainingObject) -> Self:
        return mirror(cls, row)


@strawberry.type(description="Removal of what an attempt had in the cluster.")
class Teardown(Mirror):
    state: TeardownState = strawberry.field(description="How far it is.")
    started_at: datetime = strawberry.field(description="When it began.")
    remaining: list[RemainingObject] = strawberry.field(
        description=("What is still there, as last seen; at most 100."), directives=[list_size(10)]
    )
    reason: Reason | None = strawberry.field(description="Why it does not go on; null unless BLOCKED.")
    released_at: datetime | None = strawberry.field(description=("When everything was seen to be gone; null before."))

    made: ClassVar[Made] = {
        "remaining": lambda this: [RemainingObject.of(one) for one in this.mirrored.remaining],
        "reason": lambda this: Reason.maybe(this.mirrored.reason),
    }

    @classmethod
    def of(cls, row: teardown.Teardown | None) -> Self | None:
        return None if row is None else mirror(cls, row)


@strawberry.type(description="A pool of a job with how far its machines are.")
class Pool(Mirror):
    row: strawberry.Private[job.Job]
    name: str = strawberry.field(description="Name.")
    primary: bool = strawberry.field(
        description=("Whether it is the primary pool, whose machine zero is the Ray head.")
    )
    series: str = strawberry.field(description="GPU series.")
    machines: int = strawberry.field(description="Machines asked for.")
    gpus_per_machine: int = strawberry.field(description="GPUs of each machine.")
    spec: PoolSpec = strawberry.field(description="Everything that was asked for.")

    @strawberry.field(description="How many of its Pods are in which phase.")
    async def pod_counts(self, info: Info) -> PodCounts:
        return PodCounts.of(self.machines, await self._pods(of_info(info)))

    reason: Reason | None = strawberry.field(description="What holds this pool; null when nothing does.")

    @strawberry.field(description="Its Pods in the current attempt; at most 1,000.", directives=[list_size(20)])
    async def pods(self, info: Info) -> list[Pod]:
        return [Pod.of(pod, self.row.run) for pod in (await self._pods(of_info(info)))[:1000]]

    async def _pods(self, context: Context) -> list[observation.PodView]:
        pods = await context.loaders.pods.load(self.row.run)
        return [pod for pod in pods if pod.pool == self.name]

    made: ClassVar[Made] = {
        "primary": lambda this: this.mirrored is this.row.spec.primary,
        "spec": lambda this: PoolSpec.of(this.mirrored),
        "reason": lambda this: None if this.row.decided else Reason.maybe(this.row.attempt.reason),
    }

    @classmethod
    def all_of(cls, row: job.Job) -> list[Self]:
        return [mirror(cls, pool, row=row) for pool in row.spec.pools]


def waiting_reason(found: str | None) -> ContainerWaitingReason | None:
    """Kubernetes' word for why a container waits, for example ImagePullBackOff, as the schema's."""
    return _known(ContainerWaitingReason, found)


def _first_wait(row: observation.PodView) -> str | None:
    return next((one.waiting_reason for one in row.containers if one.waiting_reason), None)


def _waiting_message(row: observation.ContainerView) -> str | None:
    return ": ".join(filter(None, (row.waiting_reason, row.waiting_message))) or None


def _submission_mode(row: observation.RayJobView) -> SubmissionMode:
    return SubmissionMode.HTTP if row.submission_mode == "HTTPMode" else SubmissionMode.K8S_JOB


def _known(enum: type[Known], found: str | None) -> Known | None:
    if not found:
        return None
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", found).upper()
    return enum[name] if name in enum.__members__ else enum["OTHER"]
