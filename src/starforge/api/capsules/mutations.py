"""prepareCode: thin, as the action decides."""

from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.capsules.types import PrepareCodePayload
from starforge.api.context import of_info
from starforge.api.directives import cost, needs
from starforge.api.enums import CodeStatus
from starforge.api.inputs import PrepareCodeInput
from starforge.api.payloads import user_errors
from starforge.api.values import SignedRequest
from starforge.domain.actions.prepare_code import Announced, prepare_code
from starforge.domain.errors import UserMistake
from starforge.domain.names import Digest
from starforge.domain.rights import Role


@strawberry.type
class CapsuleMutations:
    @strawberry.mutation(
        description=(
            "Say which code will be used and learn whether it is here already or where to PUT it; the bytes do not pass "
            "through the gateway."
        ),
        directives=[needs(Role.SUBMITTER), cost(10)],
    )
    async def prepare_code(
        self,
        info: Info,
        input: Annotated[PrepareCodeInput, argument("Digest and size of the code.")],  # noqa: A002
    ) -> PrepareCodePayload:
        context = of_info(info)
        code = Announced(Digest(input.digest), input.transport_sha256, int(input.bytes), input.files)
        try:
            upload = await context.services.objects_thread(prepare_code, context.ports, code)
        except UserMistake as mistake:
            errors = user_errors(mistake, "input")
            return PrepareCodePayload(user_errors=errors, status=CodeStatus.REFUSED, digest=None, upload=None)
        status = CodeStatus.UPLOAD_NEEDED if upload else CodeStatus.PRESENT
        link = SignedRequest.of(upload) if upload else None
        return PrepareCodePayload(user_errors=[], status=status, digest=input.digest, upload=link)
