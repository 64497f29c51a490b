"""Pages of the timeline."""

from typing import TYPE_CHECKING

from starforge.api.context import Context
from starforge.api.cursors import row_cursor
from starforge.api.events.types import EventConnection, EventEdge, event
from starforge.api.paging import PageArgs, page_info
from starforge.domain.names import JobId
from starforge.domain.queries import EventFilter as Which

if TYPE_CHECKING:
    from starforge.api.inputs import EventFilter


async def event_page(
    context: Context, which: "EventFilter | None", page: PageArgs, job: str | None = None
) -> EventConnection:
    """Entries that match, oldest first, of one job if that is given."""
    wanted = which.which(job) if which else Which(jobs=(JobId(job),) if job else None)
    found = await context.loaders.entry_pages.load((context.caller.events(wanted), page.window()))
    events = [event(row) for _, row in found.rows]
    cursors = [row_cursor(key) for key, _ in found.rows]
    return EventConnection(
        edges=[EventEdge(cursor=cursor, node=node) for cursor, node in zip(cursors, events, strict=True)],
        nodes=events,
        page_info=page_info(found),
    )
