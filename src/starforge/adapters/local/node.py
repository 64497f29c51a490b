"""What the one Ray node of a run has: the resources of all machines that the spec asks for, added up."""

from dataclasses import dataclass

from starforge.domain.quantities import parse_bytes
from starforge.domain.spec import JobSpec

OBJECT_STORE_LEAST = 100 * 2**20
OBJECT_STORE_MOST = 2 * 2**30


@dataclass(frozen=True)
class Machine:
    """One machine that the spec asks for; `number` counts within its pool from 0."""

    pool: str
    number: int
    series: str
    gpus: int


@dataclass(frozen=True)
class NodeResources:
    """Sizes in bytes; `pools` are Ray's custom resources, 1 for each machine of the pool."""

    cpus: int
    gpus: int
    memory: int
    object_store_memory: int
    pools: dict[str, int]


def node_resources(spec: JobSpec) -> NodeResources:
    shm = sum(pool.machines * parse_bytes(pool.shm_size) for pool in spec.pools)
    return NodeResources(
        cpus=sum(pool.machines * pool.cpus for pool in spec.pools),
        gpus=spec.gpus,
        memory=sum(pool.machines * parse_bytes(pool.memory) for pool in spec.pools),
        object_store_memory=min(max(shm, OBJECT_STORE_LEAST), OBJECT_STORE_MOST),
        pools={pool.name: pool.machines for pool in spec.pools},
    )


def machines(spec: JobSpec) -> tuple[Machine, ...]:
    """Every machine of a spec; the first one is the head."""
    return tuple(
        Machine(pool.name, number, pool.series, pool.gpus_per_machine)
        for pool in spec.pools
        for number in range(pool.machines)
    )
