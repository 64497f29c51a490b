"""Answers to the mutations of jobs."""

import strawberry

from starforge.api.directives import list_size
from starforge.api.jobs.types import Attempt, Job
from starforge.api.payloads import MutationPayload, UserError
from starforge.domain.actions.cancel import CancelStatus
from starforge.domain.actions.submit import SubmitStatus


@strawberry.type(description="Answer to `submitJob`.")
class SubmitJobPayload(MutationPayload):
    status: SubmitStatus = strawberry.field(description="What became of it.")
    job: Job | None = strawberry.field(description=("The job, new or found by its idempotency key; null if refused."))


@strawberry.type(description="Answer to `cancelJob`.")
class CancelJobPayload(MutationPayload):
    status: CancelStatus = strawberry.field(description="What became of it.")
    job: Job | None = strawberry.field(
        description=("The job after that; null if there is none that the caller may see.")
    )


@strawberry.type(description="What became of one item of a batch.")
class SubmitOutcome:
    index: int = strawberry.field(description="Index of the item, from 0.")
    idempotency_key: str | None = strawberry.field(description="Its idempotency key; null if it had none.")
    status: SubmitStatus = strawberry.field(description="What became of it.")
    job: Job | None = strawberry.field(description="The job, new or found by its key; null if there is none.")
    user_errors: list[UserError] = strawberry.field(
        description=(
            'What is wrong with this item, with paths from ["input", "items", index]; empty when it was accepted.'
        ),
        directives=[list_size(2)],
    )


@strawberry.type(description="Answer to `submitJobs`.")
class SubmitJobsPayload(MutationPayload):
    user_errors: list[UserError] = strawberry.field(
        description="What is wrong with the call as a whole; what is wrong with an item is in its outcome.",
        directives=[list_size(5)],
    )
    outcomes: list[SubmitOutcome] = strawberry.field(
        description="One outcome per item, in the order given; empty if the call as a whole was refused.",
        directives=[list_size(100)],
    )
    accepted_count: int = strawberry.field(description="Items that now have a job, REPLAYED ones included.")
    refused_count: int = strawberry.field(description="Items that have none.")


@strawberry.type(description="What became of one job.")
class CancelOutcome:
    job: Job = strawberry.field(description="The job.")
    status: CancelStatus = strawberry.field(description="What became of it.")
    user_errors: list[UserError] = strawberry.field(
        description="What is wrong with this job; empty when nothing is.", directives=[list_size(1)]
    )


@strawberry.type(description="Answer to `cancelJobs`.")
class CancelJobsPayload(MutationPayload):
    user_errors: list[UserError] = strawberry.field(
        description="What is wrong with the call as a whole; what is wrong with one job is in its outcome.",
        directives=[list_size(5)],
    )
    dry_run: bool = strawberry.field(description="Whether this was a dry run.")
    outcomes: list[CancelOutcome] = strawberry.field(
        description="One outcome per job, oldest job first; at most `limit`."
    )
    matched_count: int = strawberry.field(description="Jobs that matched and had not ended.")
    remaining_count: int = strawberry.field(
        description="Matching jobs beyond `limit` that were not touched; call again until it is 0."
    )
    gpus: int = strawberry.field(description="GPUs that the jobs in `outcomes` hold or ask for.")


@strawberry.type(description="Answer to `retryJob`.")
class RetryJobPayload(MutationPayload):
    status: SubmitStatus = strawberry.field(description="What became of it.")
    job: Job | None = strawberry.field(description="The job after that; null if there is none that the caller may see.")
    attempt: Attempt | None = strawberry.field(description="The new attempt, or that of the same key; null if refused.")
