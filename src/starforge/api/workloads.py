"""The job or playground that something belongs to."""

from starforge.api.context import Context
from starforge.api.interfaces import Workload
from starforge.domain.names import RunKey, playground_of


async def workload_of(context: Context, run: RunKey | None) -> Workload | None:
    """What a run is of; None if there is none any more, or no run."""
    from starforge.api.jobs.types import Job
    from starforge.api.playgrounds.types import Playground

    if run is None:
        return None
    playground = playground_of(run)
    if playground is None:
        job = await context.loaders.jobs.load(run.job)
        return Job.of(job) if job else None
    row = await context.loaders.playgrounds.load(playground)
    return Playground.of(row) if row else None


async def fleet_of(context: Context, run: RunKey) -> str | None:
    """Name of the fleet that a run is on."""
    playground = playground_of(run)
    if playground is None:
        job = await context.loaders.jobs.load(run.job)
        return job.spec.fleet if job else None
    row = await context.loaders.playgrounds.load(playground)
    return row.spec.machine.fleet if row else None


def attempt_of(run: RunKey | None) -> int | None:
    """The attempt that something belongs to, None for a playground, which has none."""
    return None if run is None or playground_of(run) else run.attempt
