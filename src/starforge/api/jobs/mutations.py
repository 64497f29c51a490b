"""submitJob and cancelJob: thin, as the actions decide."""

from dataclasses import replace
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_info
from starforge.api.directives import cost, needs
from starforge.api.enums import UserErrorCode
from starforge.api.inputs import SubmitJobInput
from starforge.api.jobs.payloads import CancelJobPayload, SubmitJobPayload
from starforge.api.jobs.types import Job
from starforge.api.payloads import InputError, user_errors
from starforge.domain.actions.cancel import CancelStatus, Wish, cancel
from starforge.domain.actions.submit import SubmitStatus, submit
from starforge.domain.errors import Conflict, NotFound, UserMistake
from starforge.domain.names import JobId
from starforge.domain.rights import Role


@strawberry.type
class JobMutations:
    @strawberry.mutation(description="Submit one job.", directives=[needs(Role.SUBMITTER), cost(10)])
    async def submit_job(
        self,
        info: Info,
        input: Annotated[SubmitJobInput, argument("The job, its code and its idempotency key.")],  # noqa: A002
    ) -> SubmitJobPayload:
        context = of_info(info)
        try:
            given = input.submission()
            wanted = replace(given, draft=context.caller.placed(given.draft))
            done = await context.services.thread(submit, context.ports, wanted, context.caller.actor)
        except UserMistake as mistake:
            errors = user_errors(mistake, "input", workload=await _holder(context, mistake))
            return SubmitJobPayload(user_errors=errors, status=SubmitStatus.REFUSED, job=None)
        return SubmitJobPayload(user_errors=[], status=done.status, job=Job.of(done.job))

    @strawberry.mutation(
        description=(
            "Ask for a job to end: SIGTERM, a grace, then removal of its cluster; a job that has ended is left as it is "
            "and the answer says so."
        ),
        directives=[needs(Role.SUBMITTER), cost(10)],
    )
    async def cancel_job(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of the job.")],  # noqa: A002
        attempt: Annotated[
            int | None,
            argument(
                "Cancel only if this is still the current attempt, so that a late call can't end a newer one; any "
                "attempt if left out."
            ),
        ] = None,
        grace_seconds: Annotated[
            int | None,
            argument("Seconds between SIGTERM and removal, 0 to 3,600; the spec's own grace if left out."),
        ] = None,
        note: Annotated[str | None, argument("Why, in at most 500 characters, shown in the timeline.")] = None,
    ) -> CancelJobPayload:
        context = of_info(info)
        wish = Wish(context.caller.actor, note, grace_seconds, attempt)
        try:
            seen = await context.job(JobId(str(id)))
            status, job = await context.services.thread(cancel, context.ports, seen.id, wish)
        except UserMistake as mistake:
            context.renew()
            row = await context.seen_job(JobId(str(id)))
            found = Job.of(row) if row else None
            errors = user_errors(mistake, workload=found)
            return CancelJobPayload(user_errors=errors, status=CancelStatus.REFUSED, job=found)
        except NotFound as absent:
            error = InputError(code=UserErrorCode.NOT_FOUND, field=["id"], message=absent.message)
            return CancelJobPayload(user_errors=[error], status=CancelStatus.REFUSED, job=None)
        return CancelJobPayload(user_errors=[], status=status, job=Job.of(job))


async def _holder(context: Context, mistake: UserMistake) -> Job | None:
    """The job that was submitted before with the idempotency key, if that is the mistake."""
    job = mistake.job if isinstance(mistake, Conflict) else None
    row = await context.seen_job(JobId(job)) if job else None
    return Job.of(row) if row else None
