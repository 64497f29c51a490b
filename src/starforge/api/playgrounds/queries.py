"""What can be read about playgrounds."""

from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import of_info
from starforge.api.directives import page_size
from starforge.api.paging import PageArgs
from starforge.api.playgrounds.inputs import PlaygroundFilter
from starforge.api.playgrounds.types import Playground, PlaygroundConnection
from starforge.domain.names import PlaygroundId
from starforge.domain.queries import PlaygroundFilter as Which


@strawberry.type
class PlaygroundQueries:
    @strawberry.field(description="One playground, or null if there is none that the caller may see.")
    async def playground(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of the playground.")],  # noqa: A002
    ) -> Playground | None:
        row = await of_info(info).seen_playground(PlaygroundId(str(id)))
        return Playground.of(row) if row else None

    @strawberry.field(description="Playgrounds that match, newest first.", directives=[page_size()])
    async def playgrounds(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            PlaygroundFilter | None, argument("Which playgrounds; all that the caller may see if left out.")
        ] = None,
        first: Annotated[int | None, argument("Return the first this many, 1 to 100.")] = None,
        after: Annotated[str | None, argument("Continue after this cursor.")] = None,
        last: Annotated[int | None, argument("Return the last this many, 1 to 100.")] = None,
        before: Annotated[str | None, argument("Stop before this cursor.")] = None,
    ) -> PlaygroundConnection:
        context, page = of_info(info), PageArgs(first, after, last, before)
        which = context.caller.playgrounds(filter.which() if filter else Which())
        found = await context.services.thread(context.ports.store.playground_page, which, page.window())
        return PlaygroundConnection.of(found)
