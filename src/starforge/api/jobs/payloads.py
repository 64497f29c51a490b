"""Answers to the mutations of jobs."""

import strawberry

from starforge.api.jobs.types import Job
from starforge.api.payloads import MutationPayload
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
