"""What the fleet remembers of a run; everything else follows from it, the seed and the time."""

from dataclasses import dataclass
from datetime import datetime

from starforge.domain.names import RunKey
from starforge.domain.spec import JobSpec


@dataclass(frozen=True)
class Machine:
    """One machine that a spec asks for, `number` counted within its pool from 0."""

    pool: str
    number: int
    series: str
    gpus: int
    cpus: int
    image: str | None


@dataclass(frozen=True)
class Placement:
    """When the machines got their nodes, all at once, in the order of `machines`."""

    at: datetime
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Stop:
    """A wish that the command ends: asked at `at`, killed at `kill_at` if it is still there then."""

    at: datetime
    kill_at: datetime


@dataclass(frozen=True, eq=False)
class Record:
    """A run as it was launched, and what was done to it since. Equal by identity: it is large, and a key of caches."""

    run: RunKey
    name: str
    nonce: str
    spec: JobSpec
    launched_at: datetime
    placement: Placement | None = None
    stop: Stop | None = None
    deleted_at: datetime | None = None


def machines(spec: JobSpec) -> tuple[Machine, ...]:
    """Every machine of a spec; the first one is the Ray head."""
    return tuple(
        Machine(pool.name, number, pool.series, pool.gpus_per_machine, pool.cpus, pool.image or spec.image)
        for pool in spec.pools
        for number in range(pool.machines)
    )
