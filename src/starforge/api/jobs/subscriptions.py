"""Jobs live: a snapshot at a position or what came after a cursor, then every change, coalesced to the newest."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_info
from starforge.api.cursors import feed_cursor
from starforge.api.enums import ChangeKind
from starforge.api.feed.stream import Step, resume_position, steps
from starforge.api.feed.types import JobChange
from starforge.api.inputs import JobFilter
from starforge.api.jobs.types import Job
from starforge.domain import job as domain
from starforge.domain.changes import Aspect
from starforge.domain.errors import StarForgeError
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow, JobOrder, Window
from starforge.domain.queries import JobFilter as Which

SNAPSHOT_MAX = 1000
AFTER = "Cursor to resume from, of this subscription or of `feed`; a snapshot comes first if left out."


class SnapshotTooLarge(StarForgeError):
    code = "SNAPSHOT_TOO_LARGE"


@strawberry.type
class JobSubscriptions:
    @strawberry.subscription(
        description=(
            "One job: a snapshot, then its changes, coalesced to the newest when the reader is slow; goes on through "
            "retries until the client ends it."
        )
    )
    async def job(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of the job.")],  # noqa: A002
        after: Annotated[str | None, argument(AFTER)] = None,
    ) -> AsyncGenerator[JobChange, None]:
        context = of_info(info)
        await context.job(JobId(str(id)))
        async for change in _changes(context, Which(ids=(JobId(str(id)),)), after):
            yield change

    @strawberry.subscription(
        description=(
            "Jobs that match: a snapshot of at most 1,000 (else SNAPSHOT_TOO_LARGE), a bookmark, then changes, "
            "coalesced per job when the reader is slow."
        )
    )
    async def jobs(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            JobFilter | None, argument("Which jobs; all that the caller may see if left out.")
        ] = None,
        after: Annotated[str | None, argument(AFTER)] = None,
    ) -> AsyncGenerator[JobChange, None]:
        async for change in _changes(of_info(info), filter.which() if filter else Which(), after):
            yield change


async def _changes(context: Context, which: Which, after: str | None) -> AsyncGenerator[JobChange, None]:
    position = None if after is None else await resume_position(context.services.hub, after)
    sent: dict[JobId, int] = {}
    only = frozenset(which.ids) if which.ids is not None else None

    def wants(row: FeedRow) -> bool:
        return row.kind is FeedKind.JOB and (only is None or row.job in only)

    snapshot = after is None
    async for step in steps(context, wants, position, coalesce=True):
        context.renew()
        if snapshot:
            snapshot = False
            for row in await _matching(context, which):
                sent[row.id] = row.revision
                yield _change(step.position, ChangeKind.SNAPSHOT, row, datetime.now(UTC), frozenset())
        change = await _told(context, which, step, sent)
        if change:
            yield change


async def _matching(context: Context, which: Which) -> list[domain.Job]:
    store, rows = context.ports.store, list[domain.Job]()
    after = None
    while True:
        page = await context.services.thread(store.job_page, which, JobOrder(), Window(100, after=after))
        rows += [row for _, row in page.rows]
        if not page.has_next:
            return rows
        if len(rows) >= SNAPSHOT_MAX:
            raise SnapshotTooLarge("More than 1,000 jobs match: query a page and subscribe after its feed cursor.")
        after = page.rows[-1][0]


async def _told(context: Context, which: Which, step: Step, sent: dict[JobId, int]) -> JobChange | None:
    """The change to send for a step; None for a revision that was sent before."""
    if step.row is None or step.row.job is None:
        return bookmark(step.position)
    row = await context.job(step.row.job)
    if row.revision <= sent.get(row.id, -1):
        return None
    matches = await _matches(context, which, row)
    sent[row.id] = row.revision
    kind = ChangeKind.UPDATED if matches else ChangeKind.REMOVED
    return _change(step.position, kind, row, step.row.at, step.row.aspects)


async def _matches(context: Context, which: Which, row: domain.Job) -> bool:
    if which == Which() or which == Which(ids=which.ids):
        return True
    one = replace(which, ids=(row.id,))
    return bool(await context.services.thread(context.ports.store.job_count, one, at_most=1))


def _change(position: int, kind: ChangeKind, row: domain.Job, at: datetime, aspects: frozenset[Aspect]) -> JobChange:
    return JobChange(
        cursor=feed_cursor(position),
        kind=kind,
        at=at,
        job_id=strawberry.ID(row.id),
        job=Job.of(row),
        aspects=sorted(aspects),
    )


def bookmark(position: int) -> JobChange:
    """A step that says only that everything up to `position` was told."""
    return JobChange(
        cursor=feed_cursor(position), kind=ChangeKind.BOOKMARK, at=datetime.now(UTC), job_id=None, job=None, aspects=[]
    )
