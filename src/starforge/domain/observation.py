"""What a fleet tells about a run: the words of Kubernetes and KubeRay, kept as found, without deciding anything."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from starforge.domain.capacity.nodes import NodesSeen
from starforge.domain.names import RunKey
from starforge.domain.reason import ObjectRef, ReasonCode


class RunPhase(StrEnum):
    """Where a run is, in words that every fleet shares."""

    ABSENT = "ABSENT"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    INVALID = "INVALID"


ENDED_PHASES = frozenset({RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.STOPPED, RunPhase.INVALID})


class PodPhase(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"


class PodRole(StrEnum):
    HEAD = "HEAD"
    WORKER = "WORKER"
    SUBMITTER = "SUBMITTER"


class PodRuntime(StrEnum):
    KUBERNETES = "KUBERNETES"
    PROCESS = "PROCESS"
    SIMULATED = "SIMULATED"


class ContainerRole(StrEnum):
    INIT = "INIT"
    SIDECAR = "SIDECAR"
    MAIN = "MAIN"


class ContainerState(StrEnum):
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"


@dataclass(frozen=True)
class Termination:
    """How a container ended; `reason` as found, for example OOMKilled."""

    exit_code: int
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def oom_killed(self) -> bool:
        return self.reason == "OOMKilled"


@dataclass(frozen=True)
class ContainerView:
    """A container; `waiting_reason` and `waiting_message` as found, for example ImagePullBackOff."""

    name: str
    role: ContainerRole
    image: str
    state: ContainerState
    ready: bool = False
    restarts: int = 0
    waiting_reason: str | None = None
    waiting_message: str | None = None
    started_at: datetime | None = None
    termination: Termination | None = None
    previous: Termination | None = None


@dataclass(frozen=True)
class PodCondition:
    """A condition; `status` is None when Kubernetes says Unknown."""

    type: str
    status: bool | None
    reason: str | None = None
    message: str | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True)
class PodView:
    """A Pod, or a process that stands for one. `machine` counts in its pool from 0; `gpus` are those it asks for."""

    uid: str
    name: str
    namespace: str | None
    runtime: PodRuntime
    role: PodRole
    pool: str | None
    machine: int | None
    phase: PodPhase
    created_at: datetime
    observed_at: datetime
    ready: bool = False
    terminating: bool = False
    reason: str | None = None
    message: str | None = None
    node_name: str | None = None
    gpus: int = 0
    restarts: int = 0
    conditions: tuple[PodCondition, ...] = ()
    containers: tuple[ContainerView, ...] = ()
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    deletion_requested_at: datetime | None = None
    gone_at: datetime | None = None

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef("Pod", self.name, self.namespace, self.uid)

    @property
    def title(self) -> str:
        """What a sentence calls it."""
        what = "Head" if self.role is PodRole.HEAD else "Pod"
        return f"{what} {self.name} of pool {self.pool}" if self.pool else f"{what} {self.name}"

    @property
    def mains(self) -> tuple[ContainerView, ...]:
        """Its containers without those that only prepare or accompany."""
        return tuple(container for container in self.containers if container.role is ContainerRole.MAIN)

    @property
    def ended_once(self) -> bool:
        """Whether Ray's own container ended, if only to be started again; a sidecar may restart as it likes."""
        ended = any(main.restarts or main.termination for main in self.mains) if self.mains else self.restarts > 0
        return ended or self.phase in (PodPhase.FAILED, PodPhase.SUCCEEDED)


@dataclass(frozen=True)
class RayJobView:
    """A RayJob's status as found; `job_status` and `deployment_status` are KubeRay's own words, None before any.

    `suspended` is what its spec says, as when another queue keeps it.
    """

    name: str
    namespace: str
    uid: str
    ray_cluster: str | None = None
    submission_id: str | None = None
    submission_mode: str = "HTTPMode"
    job_status: str | None = None
    deployment_status: str | None = None
    reason: str | None = None
    message: str | None = None
    observed_at: datetime | None = None
    ended_at: datetime | None = None
    deletion_requested_at: datetime | None = None
    suspended: bool = False


@dataclass(frozen=True)
class WorkloadView:
    """Kueue's Workload of a RayJob: whether it has its quota, and what Kueue says about that."""

    name: str
    admitted: bool
    message: str | None = None


@dataclass(frozen=True)
class RayClusterView:
    """A RayCluster; `failure` is the condition that tells why KubeRay can't make or delete its Pods, None if it can."""

    name: str
    namespace: str
    uid: str
    failure: PodCondition | None = None
    deletion_requested_at: datetime | None = None


@dataclass(frozen=True)
class RunSeen:
    """Everything there is of a run right now. `pods` is complete: one that was known and is missing here is gone.

    `message` is what the fleet says about the end, at most 20,000 characters with secrets removed. ABSENT is only told
    after a list or a deletion was seen, never because the fleet could not be asked. `gone` are Pods that went since the
    picture before, as they were last: what is written into a Pod that is taken away is there too shortly for a picture.
    """

    run: RunKey
    phase: RunPhase
    at: datetime
    pods: tuple[PodView, ...] = ()
    rayjob: RayJobView | None = None
    uid: str | None = None
    message: str | None = None
    raycluster: RayClusterView | None = None
    gone: tuple[PodView, ...] = ()
    workload: WorkloadView | None = None


@dataclass(frozen=True)
class EventSeen:
    """A Kubernetes Event; `uid` is its own and stays the same while `count` rises."""

    run: RunKey
    uid: str
    object: ObjectRef
    reason: str
    warning: bool
    message: str
    count: int
    first_at: datetime
    last_at: datetime
    reported_by: str | None = None


@dataclass(frozen=True)
class RawLine:
    """A line as the runtime kept it, without its end; `at` is the runtime's time of it, None if not told.

    `goes_on` says that the next one is more of the same line.
    """

    data: bytes
    at: datetime | None = None
    goes_on: bool = False


@dataclass(frozen=True)
class LogSeen:
    """Some lines of one stream: of a container (`pod/<pod>/<container>`), or of the driver (`driver`).

    `cursor` resumes right after them; `closed` says that nothing comes any more, and `missing` then why lines after
    these could not be had, None if there are none. A container's stream may hold the driver's frames (unframing.py),
    which are taken out and become the driver's own log. `problem` is why it can't be read right now, None if it can.
    `previous` is the container's run before it was restarted.
    """

    run: RunKey
    source: str
    lines: tuple[RawLine, ...]
    cursor: str
    pod: str | None = None
    container: str | None = None
    init: bool = False
    closed: bool = False
    missing: str | None = None
    problem: str | None = None
    previous: bool = False


@dataclass(frozen=True)
class FleetHeard:
    """Whether the fleet can be asked: `problem` is None when it can, else `code` says of which kind it is.

    `other_queue` names whatever else of the fleet decides which jobs begin when, such as Kueue.
    """

    at: datetime
    problem: str | None = None
    code: ReasonCode = ReasonCode.API_UNAVAILABLE
    other_queue: str | None = None


Seen = RunSeen | EventSeen | LogSeen | FleetHeard | NodesSeen


def rayjob_phase(job_status: str | None, deployment_status: str | None) -> RunPhase:
    """Phase of a RayJob. `Complete` is success only with SUCCEEDED, as a stopped job is Complete too."""
    if deployment_status == "ValidationFailed":
        return RunPhase.INVALID
    if deployment_status == "Complete":
        return RunPhase.SUCCEEDED if job_status == "SUCCEEDED" else RunPhase.STOPPED
    if deployment_status == "Failed":
        return RunPhase.FAILED
    if job_status == "RUNNING" and deployment_status == "Running":
        return RunPhase.RUNNING
    return RunPhase.WAITING
