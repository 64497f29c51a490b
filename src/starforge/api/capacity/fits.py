"""Whether a spec would find its GPUs, asked without submitting it."""

from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.capacity.desk import Known
from starforge.api.capacity.fit_types import FitReport
from starforge.api.context import Context, of_info
from starforge.api.directives import cost
from starforge.api.inputs import JobSpecInput
from starforge.api.payloads import user_errors
from starforge.domain.actions.submit import below
from starforge.domain.actions.take_turns import reserved
from starforge.domain.capacity.fit import FleetFit, fit
from starforge.domain.capacity.packing import machines_of
from starforge.domain.errors import SpecRefused
from starforge.domain.spec import JobSpec
from starforge.domain.spec_rules import freeze


@strawberry.type
class FitQueries:
    @strawberry.field(
        description=(
            "Whether a job with this spec would find its GPUs now, later or never, and what else is wrong with it; "
            "changes nothing, so a form may ask on every edit."
        ),
        directives=[cost(10)],
    )
    async def fits(
        self, info: Info, spec: Annotated[JobSpecInput, argument("The spec exactly as it would be submitted.")]
    ) -> FitReport:
        context = of_info(info)
        try:
            wanted = freeze(context.caller.placed(spec.draft()), context.ports.fleet.defaults())
        except SpecRefused as refused:
            mistake = SpecRefused([below("spec", problem) for problem in refused.problems])
            return FitReport.refused(mistake.message, user_errors(mistake))
        known = await context.services.capacity.look()
        return FitReport.of(await context.services.thread(_fit, context, known, wanted), known)


def _fit(context: Context, known: Known, wanted: JobSpec) -> FleetFit:
    """Besides what is held, what was promised to jobs that had their turn is not free."""
    promised = [job for job in known.jobs.values() if not (job.queues or job.spec.queue or job.decided)]
    return fit(
        known.fleet,
        machines_of(wanted),
        known.nodes,
        reserved=list(reserved(promised, known.nodes)),
        until=known.until,
        at=known.at,
    )
