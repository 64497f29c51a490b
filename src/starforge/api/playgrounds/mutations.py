"""createPlayground, extendPlayground and stopPlayground: thin, as the actions decide."""

from dataclasses import replace
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_info
from starforge.api.directives import cost, needs
from starforge.api.enums import UserErrorCode
from starforge.api.payloads import InputError, UserError, user_errors
from starforge.api.playgrounds.inputs import CreatePlaygroundInput
from starforge.api.playgrounds.payloads import (
    CreatePlaygroundPayload,
    ExtendPlaygroundPayload,
    StopPlaygroundPayload,
)
from starforge.api.playgrounds.types import Playground
from starforge.domain.actions.create_playground import create_playground
from starforge.domain.actions.extend_playground import extend_playground
from starforge.domain.actions.stop_playground import stop_playground
from starforge.domain.actions.submit import SubmitStatus
from starforge.domain.errors import Conflict, NotFound, Problem, SpecRefused, UserMistake
from starforge.domain.names import PlaygroundId
from starforge.domain.playground_spec import PlaygroundDraft
from starforge.domain.rights import Role

Id = Annotated[strawberry.ID, argument("Opaque id of the playground.")]


@strawberry.type
class PlaygroundMutations:
    @strawberry.mutation(
        description="Start a vLLM Pod to talk to, with a time to live.", directives=[needs(Role.SUBMITTER), cost(10)]
    )
    async def create_playground(
        self,
        info: Info,
        input: Annotated[CreatePlaygroundInput, argument("The model, its GPUs and its limits.")],  # noqa: A002
    ) -> CreatePlaygroundPayload:
        context, key = of_info(info), input.idempotency_key
        try:
            draft = await _placed(context, input.draft())
            done = await context.services.thread(create_playground, context.ports, draft, context.caller.actor, key)
        except UserMistake as mistake:
            holder = await _holder(context, mistake)
            errors = user_errors(mistake, "input", workload=holder)
            return CreatePlaygroundPayload(user_errors=errors, status=SubmitStatus.REFUSED, playground=None)
        return CreatePlaygroundPayload(user_errors=[], status=done.status, playground=Playground.of(done.playground))

    @strawberry.mutation(
        description=(
            "Move the expiry to at least this many seconds from now; never earlier, so sending it twice adds nothing."
        ),
        directives=[needs(Role.SUBMITTER), cost(10)],
    )
    async def extend_playground(
        self,
        info: Info,
        id: Id,  # noqa: A002
        seconds: Annotated[int, argument("Seconds from now, 60 to the limit in `viewer.limits.playgroundSeconds`.")],
    ) -> ExtendPlaygroundPayload:
        context, which = of_info(info), PlaygroundId(str(id))
        try:
            await context.playground(which)
            args = context.ports, which, seconds, context.caller.actor
            row = await context.services.thread(extend_playground, *args)
        except UserMistake as mistake:
            context.renew()
            found = await context.seen_playground(which)
            playground = Playground.of(found) if found else None
            errors = user_errors(mistake, workload=playground)
            return ExtendPlaygroundPayload(user_errors=errors, playground=playground)
        except NotFound as absent:
            return ExtendPlaygroundPayload(user_errors=[_absent(absent)], playground=None)
        return ExtendPlaygroundPayload(user_errors=[], playground=Playground.of(row))

    @strawberry.mutation(
        description="Stop a playground and free its GPUs; one that has stopped is left as it is.",
        directives=[needs(Role.SUBMITTER), cost(10)],
    )
    async def stop_playground(
        self,
        info: Info,
        id: Id,  # noqa: A002
    ) -> StopPlaygroundPayload:
        context, which = of_info(info), PlaygroundId(str(id))
        try:
            await context.playground(which)
            row = await context.services.thread(stop_playground, context.ports, which, context.caller.actor)
        except NotFound as absent:
            return StopPlaygroundPayload(user_errors=[_absent(absent)], playground=None)
        return StopPlaygroundPayload(user_errors=[], playground=Playground.of(row))


async def _placed(context: Context, draft: PlaygroundDraft) -> PlaygroundDraft:
    """The draft with its project; SpecRefused if that, or the job it is from, is not the caller's to use."""
    placed = replace(draft, project=context.caller.placed_in(draft.project))
    if draft.from_job and await context.seen_job(draft.from_job) is None:
        message = f"There is no job {draft.from_job}."
        raise SpecRefused([Problem("NOT_FOUND", ("fromJob",), message)])
    return placed


async def _holder(context: Context, mistake: UserMistake) -> Playground | None:
    """The playground that was created before with the idempotency key, if that is the mistake."""
    holder = mistake.job if isinstance(mistake, Conflict) else None
    row = await context.seen_playground(PlaygroundId(holder)) if holder else None
    return Playground.of(row) if row else None


def _absent(absent: NotFound) -> UserError:
    return InputError(code=UserErrorCode.NOT_FOUND, field=["id"], message=absent.message)
