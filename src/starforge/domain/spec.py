"""What to run: the spec as a person writes it (a draft) and as it is frozen at submit."""

from dataclasses import dataclass

PRIMARY = 0


@dataclass(frozen=True)
class SecretKey:
    """A key of a Kubernetes Secret in the fleet's namespace."""

    name: str
    key: str


@dataclass(frozen=True)
class EnvVar:
    """A variable of every Ray container: exactly one of `value` and `secret`."""

    name: str
    value: str | None = None
    secret: SecretKey | None = None


@dataclass(frozen=True)
class Label:
    key: str
    value: str


@dataclass(frozen=True)
class Deadlines:
    """Limits of the three clocks in seconds; 0 for none."""

    queue_seconds: int
    pre_running_seconds: int
    active_seconds: int


@dataclass(frozen=True)
class PoolSpec:
    """A group of equal machines; its name is also the Ray custom resource that pins work to it (1 a machine).

    `memory` and `shm_size` are Kubernetes quantities of one machine, `shm_size` counted within `memory`.
    """

    name: str
    series: str
    machines: int
    gpus_per_machine: int
    cpus: int
    memory: str
    shm_size: str
    image: str | None = None


@dataclass(frozen=True)
class JobSpec:
    """What to run, with every default filled in. The first pool is the primary one: its machine zero is the Ray head.

    `image` is None on a fleet without images. `queue` is one of the cluster to wait in, None for our own.
    """

    name: str
    project: str
    fleet: str | None
    description: str | None
    image: str | None
    command: tuple[str, ...]
    env: tuple[EnvVar, ...]
    pools: tuple[PoolSpec, ...]
    deadlines: Deadlines
    labels: tuple[Label, ...]
    priority: int
    cancel_grace_seconds: int
    queue: str | None = None

    @property
    def primary(self) -> PoolSpec:
        return self.pools[PRIMARY]

    @property
    def machines(self) -> int:
        return sum(pool.machines for pool in self.pools)

    @property
    def gpus(self) -> int:
        return sum(pool.machines * pool.gpus_per_machine for pool in self.pools)


@dataclass(frozen=True)
class DeadlinesDraft:
    queue_seconds: int | None = None
    pre_running_seconds: int | None = None
    active_seconds: int | None = None


@dataclass(frozen=True)
class PoolDraft:
    """A pool as asked for; what is None comes from the fleet's defaults."""

    name: str
    series: str
    machines: int
    gpus_per_machine: int
    cpus: int | None = None
    memory: str | None = None
    shm_size: str | None = None
    image: str | None = None


@dataclass(frozen=True)
class SpecDraft:
    """A spec as asked for, not yet checked; what is None comes from the fleet's defaults."""

    name: str
    command: tuple[str, ...]
    pools: tuple[PoolDraft, ...]
    project: str | None = None
    fleet: str | None = None
    description: str | None = None
    image: str | None = None
    env: tuple[EnvVar, ...] = ()
    deadlines: DeadlinesDraft = DeadlinesDraft()
    labels: tuple[Label, ...] = ()
    priority: int | None = None
    cancel_grace_seconds: int | None = None
    queue: str | None = None


@dataclass(frozen=True)
class FleetDefaults:
    """What a spec gets where it says nothing, and what the fleet can't do.

    `has_images` is False on fleets that run on this machine; `storage_shared` is False when the storage claim can be
    mounted by one machine only; `logical_gpus` is True where GPUs are only counted and no device is behind them;
    `has_queues` says that a spec may name a queue of the cluster.
    """

    fleet: str
    image: str | None
    cpus: int
    memory: str
    shm_size: str
    deadlines: Deadlines
    cancel_grace_seconds: int
    project: str = "default"
    has_images: bool = True
    storage_shared: bool = True
    logical_gpus: bool = False
    has_queues: bool = False
