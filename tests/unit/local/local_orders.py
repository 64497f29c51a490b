"""Orders and states of runs for the tests of the local fleet."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from starforge.adapters.local.node import machines, node_resources
from starforge.adapters.local.processes import Process
from starforge.adapters.local.rundir import Phase, RunOrder, Status
from starforge.domain.spec import Deadlines, EnvVar, JobSpec, PoolSpec

TRAIN = PoolSpec("train", "h200", 2, 4, 3, "2Gi", "64Mi")
EVAL = PoolSpec("eval", "b200", 1, 1, 1, "1Gi", "64Mi")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def spec(*pools: PoolSpec, env: tuple[EnvVar, ...] = ()) -> JobSpec:
    return JobSpec(
        name="digits",
        project="default",
        fleet="local",
        description=None,
        image=None,
        command=("python3", "train.py"),
        env=env,
        pools=pools or (TRAIN, EVAL),
        deadlines=Deadlines(0, 600, 600),
        labels=(),
        priority=0,
        cancel_grace_seconds=10,
    )


def order(job: JobSpec | None = None, **changes: object) -> RunOrder:
    job = job or spec()
    plain = RunOrder(
        uid="0123456789abcdef",
        job="job-1",
        attempt=1,
        name="digits-1",
        capsule_url="file:///capsule.zip",
        capsule_headers={},
        transport_sha256="0" * 64,
        ca_file=None,
        env={variable.name: variable.value or "" for variable in job.env},
        node=node_resources(job),
        machines=machines(job),
        fleet_gpus={"h200": 8, "b200": 4},
        grace_s=10,
        created_at=NOON.timestamp(),
        scratch=str(Path("/tmp/sf-0123456789")),
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def status(phase: Phase, **changes: object) -> Status:
    return replace(Status(phase, Process(1, 1), "/tmp/sf-0123456789"), **changes)  # type: ignore[arg-type]
