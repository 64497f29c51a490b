"""The spec of a job as it was frozen at submit."""

from typing import ClassVar, Self

import strawberry

from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.scalars import BigInt
from starforge.api.values import Label
from starforge.domain import spec
from starforge.domain.quantities import parse_bytes


@strawberry.type(description="A key of a Kubernetes Secret in the fleet's namespace.")
class SecretKey(Mirror):
    name: str = strawberry.field(description="Name of the Secret.")
    key: str = strawberry.field(description="Key within it.")


@strawberry.type(description="An environment variable with a value or a reference.")
class EnvVar(Mirror):
    name: str = strawberry.field(description="Name.")
    value: str | None = strawberry.field(
        description=("Value; null if it comes from a Secret or if the caller may not read it.")
    )
    secret: SecretKey | None = strawberry.field(
        description=("Key of the Secret it comes from; null if it has a value.")
    )

    made: ClassVar[Made] = {
        "secret": lambda this: mirror(SecretKey, this.mirrored.secret) if this.mirrored.secret else None,
    }

    @classmethod
    def of(cls, row: spec.EnvVar) -> Self:
        return mirror(cls, row)


@strawberry.type(description="Limits in seconds, 0 for none.")
class Deadlines(Mirror):
    queue_seconds: int = strawberry.field(description="Longest wait for a place, in seconds; 0 for no limit.")
    pre_running_seconds: int = strawberry.field(
        description=("Longest time from having a RayJob to running, in seconds; 0 for no limit.")
    )
    active_seconds: int = strawberry.field(description="Longest run, in seconds; 0 for no limit.")


@strawberry.type(description="A group of equal machines, as asked for.")
class PoolSpec(Mirror):
    name: str = strawberry.field(
        description=("Name, which is also the Ray custom resource that pins work to the pool.")
    )
    series: str = strawberry.field(description="GPU series, the value of the node label.")
    machines: int = strawberry.field(description="Number of machines.")
    gpus_per_machine: int = strawberry.field(description="GPUs of each machine.")
    cpus: int = strawberry.field(description="CPU cores of each machine.")
    memory: str = strawberry.field(description=("Memory of each machine as a Kubernetes quantity, for example 64Gi."))
    memory_bytes: BigInt = strawberry.field(description="The same memory in bytes.")
    shm_size: str = strawberry.field(
        description=("Size of /dev/shm as a Kubernetes quantity, counted within the memory.")
    )
    image: str | None = strawberry.field(description="Image of this pool, or null for the job's.")

    made: ClassVar[Made] = {"memory_bytes": lambda this: parse_bytes(this.mirrored.memory)}

    @classmethod
    def of(cls, row: spec.PoolSpec) -> Self:
        return mirror(cls, row)


@strawberry.type(description="What to run, as frozen at submit; fields match JobSpecInput one to one.")
class JobSpec(Mirror):
    name: str = strawberry.field(description="Name.")
    project: str = strawberry.field(description="Project.")
    fleet: str | None = strawberry.field(description="Fleet asked for, or null for the first that fits.")
    description: str | None = strawberry.field(description="Free text about the job, or null if none was given.")
    image: str | None = strawberry.field(
        description="Container image of every pool without its own; null on a fleet without images."
    )
    command: list[str] = strawberry.field(
        description=("Command and arguments, run in the code's directory without a shell.")
    )
    env: list[EnvVar] = strawberry.field(description="Environment variables, in the order given.")
    pools: list[PoolSpec] = strawberry.field(description="Pools, the primary one first.")
    deadlines: Deadlines = strawberry.field(description="Limits of the three clocks.")
    labels: list[Label] = strawberry.field(description="Labels, in key order.")
    priority: int = strawberry.field(description="Priority, -100 to 100.")
    cancel_grace_seconds: int = strawberry.field(description="Seconds between SIGTERM and removal when canceled.")
    queue: str | None = strawberry.field(description="Queue asked for; null for the fleet's own.")

    made: ClassVar[Made] = {
        "command": lambda this: list(this.mirrored.command),
        "env": lambda this: [EnvVar.of(one) for one in this.mirrored.env],
        "pools": lambda this: [PoolSpec.of(one) for one in this.mirrored.pools],
        "deadlines": lambda this: mirror(Deadlines, this.mirrored.deadlines),
        "labels": lambda this: [Label.of(one) for one in this.mirrored.labels],
    }

    @classmethod
    def of(cls, row: spec.JobSpec) -> Self:
        return mirror(cls, row)
