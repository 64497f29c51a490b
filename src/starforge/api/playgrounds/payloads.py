"""Answers to the mutations of playgrounds."""

import strawberry

from starforge.api.payloads import MutationPayload
from starforge.api.playgrounds.types import Playground
from starforge.domain.actions.submit import SubmitStatus

_AFTER = "The playground after that; null if there is none that the caller may see."


@strawberry.type(description="Answer to `createPlayground`.")
class CreatePlaygroundPayload(MutationPayload):
    status: SubmitStatus = strawberry.field(description="What became of it.")
    playground: Playground | None = strawberry.field(
        description="The playground, new or found by its idempotency key; null if refused."
    )


@strawberry.type(description="Answer to `extendPlayground`.")
class ExtendPlaygroundPayload(MutationPayload):
    playground: Playground | None = strawberry.field(description=_AFTER)


@strawberry.type(description="Answer to `stopPlayground`.")
class StopPlaygroundPayload(MutationPayload):
    playground: Playground | None = strawberry.field(description=_AFTER)
