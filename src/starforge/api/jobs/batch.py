"""submitJobs, cancelJobs and retryJob: thin, as the actions decide."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_info
from starforge.api.directives import cost, needs, sized_by
from starforge.api.enums import UserErrorCode
from starforge.api.inputs import JobFilter, SubmitJobInput, SubmitJobsInput
from starforge.api.jobs.payloads import (
    CancelJobsPayload,
    CancelOutcome,
    RetryJobPayload,
    SubmitJobsPayload,
    SubmitOutcome,
)
from starforge.api.jobs.types import Attempt, Job
from starforge.api.payloads import InputError, UserError, user_errors
from starforge.domain.actions import retry as retrying
from starforge.domain.actions.cancel import Wish
from starforge.domain.actions.cancel_many import Sweep, Swept, cancel_many
from starforge.domain.actions.submit import Submission, SubmitStatus
from starforge.domain.actions.submit_many import ItemOutcome, submit_many
from starforge.domain.errors import Conflict, NotFound, UserMistake
from starforge.domain.job import Job as Row
from starforge.domain.names import JobId
from starforge.domain.rights import Caller, Role

GRACE = "Seconds between SIGTERM and removal for each job, 0 to 3,600; each spec's own grace if left out."


@strawberry.type
class BatchMutations:
    @strawberry.mutation(
        description="Submit up to 100 jobs, with one outcome per item in the order given.",
        directives=[needs(Role.SUBMITTER), cost(100)],
    )
    async def submit_jobs(
        self,
        info: Info,
        input: Annotated[SubmitJobsInput, argument("The jobs and what to do when some are refused.")],  # noqa: A002
    ) -> SubmitJobsPayload:
        context = of_info(info)
        items = [_submission(item, context.caller) for item in input.items]
        by, policy = context.caller.actor, input.error_policy
        try:
            done = await context.services.thread(submit_many, context.ports, items, by, policy)
        except UserMistake as mistake:
            errors = user_errors(mistake, "input")
            return SubmitJobsPayload(user_errors=errors, outcomes=[], accepted_count=0, refused_count=len(input.items))
        return await _submitted(context, input.items, done)

    @strawberry.mutation(
        description=(
            "Ask for every matching job that has not ended to end, oldest first, or only say which these are."
        ),
        directives=[needs(Role.SUBMITTER), cost(100), sized_by("limit", field="outcomes")],
    )
    async def cancel_jobs(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            JobFilter, argument("Which jobs; a filter with nothing set is refused with FILTER_TOO_WIDE.")
        ],
        dry_run: Annotated[bool, argument("True to change nothing and only report what would be canceled.")] = False,
        limit: Annotated[
            int, argument("Most jobs to cancel in this call, 1 to 500; `remainingCount` says whether to call again.")
        ] = 100,
        max_matched: Annotated[
            int | None,
            argument(
                "Refuse the whole call with FILTER_TOO_WIDE when more jobs than this match; no such guard if left out."
            ),
        ] = None,
        grace_seconds: Annotated[int | None, argument(GRACE)] = None,
        note: Annotated[str | None, argument("Why, in at most 500 characters, shown in each job's timeline.")] = None,
    ) -> CancelJobsPayload:
        context = of_info(info)
        wish = Wish(context.caller.actor, note, grace_seconds)
        sweep = Sweep(filter.which(), wish, limit, max_matched, dry_run)
        try:
            done = await context.services.thread(cancel_many, context.ports, sweep, context.caller)
        except UserMistake as mistake:
            return swept_payload(Swept((), 0, 0, mistake), dry_run=dry_run)
        return swept_payload(done, dry_run=dry_run)

    @strawberry.mutation(
        description="Start the next attempt of a job that has ended, with the same Capsule and spec.",
        directives=[needs(Role.SUBMITTER), cost(10)],
    )
    async def retry_job(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of the job.")],  # noqa: A002
        idempotency_key: Annotated[
            str | None, argument("Makes the call safe to repeat: the same key gives the same attempt.")
        ] = None,
        note: Annotated[str | None, argument("Why, in at most 500 characters, shown in the timeline.")] = None,
    ) -> RetryJobPayload:
        context = of_info(info)
        again = retrying.Again(context.caller.actor, idempotency_key, note)
        row = await context.seen_job(JobId(str(id)))
        try:
            if row is None:
                raise NotFound(f"There is no job {id}.")
            done = await context.services.thread(retrying.retry, context.ports, row.id, again)
        except UserMistake as mistake:
            context.renew()
            return await _not_retried(context, JobId(str(id)), mistake)
        except NotFound as absent:
            error = InputError(code=UserErrorCode.NOT_FOUND, field=["id"], message=absent.message)
            return RetryJobPayload(user_errors=[error], status=SubmitStatus.REFUSED, job=None, attempt=None)
        attempt = Attempt.of(done.attempt, done.job.id)
        return RetryJobPayload(user_errors=[], status=done.status, job=Job.of(done.job), attempt=attempt)


def _submission(item: SubmitJobInput, caller: Caller) -> Submission | UserMistake:
    """What an item says, in a project of the caller's; or why it can't be."""
    try:
        given = item.submission()
        return replace(given, draft=caller.placed(given.draft))
    except UserMistake as mistake:
        return mistake


async def _submitted(
    context: Context, items: Sequence[SubmitJobInput], done: Sequence[ItemOutcome]
) -> SubmitJobsPayload:
    ids = sorted({job for one in done if (job := _in_the_way(one.mistake))})
    held = {job: row for job, row in zip(ids, await context.loaders.jobs.load_many(ids), strict=True) if row}
    outcomes = [
        _outcome(index, item.idempotency_key, one, held)
        for index, (item, one) in enumerate(zip(items, done, strict=True))
    ]
    accepted = sum(one.job is not None for one in done)
    return SubmitJobsPayload(
        user_errors=[], outcomes=outcomes, accepted_count=accepted, refused_count=len(done) - accepted
    )


def _in_the_way(mistake: UserMistake | None) -> JobId | None:
    return JobId(mistake.job) if isinstance(mistake, Conflict) and mistake.job else None


def _outcome(index: int, key: str | None, one: ItemOutcome, held: dict[JobId, Row]) -> SubmitOutcome:
    in_the_way = _in_the_way(one.mistake)
    holder = held.get(in_the_way) if in_the_way else None
    workload = Job.of(holder) if holder else None
    errors = user_errors(one.mistake, "input", "items", str(index), workload=workload) if one.mistake else []
    job = Job.of(one.job) if one.job else None
    return SubmitOutcome(index=index, idempotency_key=key, status=one.status, job=job, user_errors=errors)


def swept_payload(done: Swept, *, dry_run: bool) -> CancelJobsPayload:
    outcomes = [
        CancelOutcome(job=Job.of(job), status=status, user_errors=_errors(done.refused.get(job.id)))
        for status, job in done.outcomes
    ]
    return CancelJobsPayload(
        user_errors=_errors(done.mistake),
        dry_run=dry_run,
        outcomes=outcomes,
        matched_count=done.matched,
        remaining_count=done.remaining,
        gpus=done.gpus,
    )


def _errors(mistake: UserMistake | None) -> list[UserError]:
    return user_errors(mistake) if mistake else []


async def _not_retried(context: Context, job: JobId, mistake: UserMistake) -> RetryJobPayload:
    """The job itself stands in the way, or the one that its key was used for."""
    row = await context.loaders.jobs.load(job)
    found = Job.of(row) if row else None
    in_the_way = _in_the_way(mistake)
    other = await context.loaders.jobs.load(in_the_way) if in_the_way else row
    errors = user_errors(mistake, workload=Job.of(other) if other else None)
    return RetryJobPayload(user_errors=errors, status=SubmitStatus.REFUSED, job=found, attempt=None)
