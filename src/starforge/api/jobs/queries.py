"""What can be read about jobs, and objects by id."""

import asyncio
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.capacity.queries import capacity_node
from starforge.api.capsules.types import Capsule
from starforge.api.context import Context, of_info
from starforge.api.cursors import feed_cursor
from starforge.api.directives import list_size, page_size
from starforge.api.events.pages import event_page
from starforge.api.events.types import EventConnection, event
from starforge.api.feed.types import Feed
from starforge.api.fleets import Fleet
from starforge.api.inputs import EventFilter, JobFilter, JobOrder
from starforge.api.interfaces import Node
from starforge.api.jobs.cluster import Pod
from starforge.api.jobs.queue import Queue
from starforge.api.jobs.types import TOTAL_COUNT_MAX, Attempt, Job, JobConnection
from starforge.api.logs.types import LogSource
from starforge.api.paging import PageArgs, bad_input
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.queries import JobFilter as Which
from starforge.domain.queries import JobOrder as Order
from starforge.domain.queue import QueueKind

FIRST = "Return the first this many, 1 to 100."
LAST = "Return the last this many, 1 to 100."
AFTER = "Continue after this cursor."
BEFORE = "Stop before this cursor."


@strawberry.type
class JobQueries:
    @strawberry.field(
        description=(
            "Where the change feed stood before anything else in this request was read; subscribe after its cursor and "
            "nothing is missed."
        )
    )
    def feed(self, info: Info) -> Feed:
        context = of_info(info)
        return Feed(
            cursor=feed_cursor(context.feed_position),
            at=context.began_at,
            retention_seconds=context.services.retention_s,
        )

    @strawberry.field(description="The object with this id, or null if there is none that the caller may see.")
    async def node(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of any type that implements Node.")],  # noqa: A002
    ) -> Node | None:
        return await _node(of_info(info), str(id))

    @strawberry.field(
        description=(
            "The objects with these ids, in the order asked for, with null for each one that is absent or not yours to "
            "see."
        ),
        directives=[list_size(100)],
    )
    async def nodes(
        self,
        info: Info,
        ids: Annotated[list[strawberry.ID], argument("Opaque ids, 100 at most.")],
    ) -> list[Node | None]:
        if len(ids) > 100:
            raise bad_input(f"`ids` has {len(ids)} entries; 100 are the most.")
        return list(await asyncio.gather(*(_node(of_info(info), str(one)) for one in ids)))

    @strawberry.field(description="One job, or null if there is none that the caller may see.")
    async def job(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of the job.")],  # noqa: A002
    ) -> Job | None:
        row = await of_info(info).seen_job(JobId(str(id)))
        return Job.of(row) if row else None

    @strawberry.field(description="Jobs that match, newest first unless ordered otherwise.", directives=[page_size()])
    async def jobs(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            JobFilter | None, argument("Which jobs; all that the caller may see if left out.")
        ] = None,
        order_by: Annotated[
            JobOrder | None, argument("Order of the rows; by creation, newest first, if left out.")
        ] = None,
        first: Annotated[int | None, argument(FIRST)] = None,
        after: Annotated[str | None, argument(AFTER)] = None,
        last: Annotated[int | None, argument(LAST)] = None,
        before: Annotated[str | None, argument(BEFORE)] = None,
    ) -> JobConnection:
        which, order = filter.which() if filter else Which(), order_by.order() if order_by else Order()
        return await _job_page(of_info(info), which, order, PageArgs(first, after, last, before))

    @strawberry.field(
        description="Events of every kind in feed order, oldest first; take `last` for the newest.",
        directives=[page_size()],
    )
    async def events(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            EventFilter | None, argument("Which events; all that the caller may see if left out.")
        ] = None,
        first: Annotated[int | None, argument(FIRST)] = None,
        after: Annotated[str | None, argument(AFTER)] = None,
        last: Annotated[int | None, argument(LAST)] = None,
        before: Annotated[str | None, argument(BEFORE)] = None,
    ) -> EventConnection:
        return await event_page(of_info(info), filter, PageArgs(first, after, last, before))


async def _job_page(context: Context, which: Which, order: Order, page: PageArgs) -> JobConnection:
    store, which = context.ports.store, context.caller.jobs(which)
    found = await context.services.thread(store.job_page, which, order, page.window())

    counting: list[asyncio.Task[int]] = []

    async def count() -> int:
        if not counting:  # asked once, whichever of the fields that need it are asked for
            ask = context.services.thread(store.job_count, which, at_most=TOTAL_COUNT_MAX + 1)
            counting.append(asyncio.create_task(ask))
        return await counting[0]

    return JobConnection.of(found, count)


async def _node(context: Context, text: str) -> Node | None:
    kind = ids.kind(text)
    if kind == "job":
        row = await context.seen_job(JobId(text))
        return Job.of(row) if row else None
    if kind == "event":
        entry = await context.seen_entry(text)
        return event(entry) if entry else None
    if kind == "capsule":
        record = await context.seen_capsule(Digest(text.partition(".")[2]))
        return Capsule.of(record) if record else None
    if kind in ("queue", "fleet", "capacity", "series", "node"):
        return await _of_fleet(context, kind, text)
    found = ids.run_of(text)
    return await _of_run(context, kind, *found) if found and await context.seen_job(found[0].job) else None


async def _of_fleet(context: Context, kind: str, text: str) -> Node | None:
    if kind == "queue":
        return await _queue(context, text)
    if kind == "fleet":
        return next((Fleet.of(one) for one in (context.ports.fleet,) if ids.fleet(one.name) == text), None)
    return await capacity_node(context, text)


async def _queue(context: Context, text: str) -> Queue | None:
    """Ours, or one of the cluster that a job names."""
    fleet = context.ports.fleet.name
    own = Queue.of(fleet, None)
    named = text.removeprefix(ids.queue(fleet, QueueKind.KUEUE, ""))
    if text == own.id:
        return own
    return Queue.of(fleet, named) if named != text and await context.loaders.queue_lengths.load(named) else None


async def _of_run(context: Context, kind: str, run: RunKey, rest: str) -> Node | None:
    loaders = context.loaders
    if kind == "attempt":
        attempts = await loaders.attempts.load(run.job)
        return next((Attempt.of(row, run.job) for row in attempts if row.number == run.attempt), None)
    if kind == "pod":
        return next((Pod.of(pod, run) for pod in await loaders.pods.load(run) if pod.uid == rest), None)
    if kind == "log":
        return next((LogSource.of(row) for row in await loaders.log_sources.load(run) if row.key == rest), None)
    return None
