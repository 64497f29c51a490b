"""Jobs live: a snapshot at a position or what came after a cursor, then every change, coalesced to the newest."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_subscription, source_of
from starforge.api.cursors import feed_cursor, is_restart, restart_cursor
from starforge.api.enums import ChangeKind
from starforge.api.feed.stream import Telling, follow, resume_position
from starforge.api.feed.types import JobChange
from starforge.api.inputs import JobFilter
from starforge.api.jobs.types import Job
from starforge.api.transport.source import Source, Step
from starforge.domain import job as domain
from starforge.domain.changes import Aspect
from starforge.domain.errors import SnapshotTooLarge
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow, JobOrder, Window
from starforge.domain.queries import JobFilter as Which

_ALL = frozenset(Aspect)
SNAPSHOT_MAX = 1000
HELD_MAX = 20_000
"""Jobs of which a subscription knows whether its clients hold them; of others, REMOVED may come twice."""
AFTER = "Cursor to resume from, of this subscription or of `feed`; a snapshot comes first if left out."


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
        context = of_subscription(info)
        await context.job(JobId(str(id)))
        async with aclosing(_changes(context, Which(ids=(JobId(str(id)),)), after)) as changes:
            async for change in changes:
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
        context, which = of_subscription(info), filter.which() if filter else Which()
        async with aclosing(_changes(context, which, after)) as changes:
            async for change in changes:
                yield change


async def _changes(context: Context, which: Which, after: str | None) -> AsyncGenerator[JobChange, None]:
    hub, source = context.services.hub, source_of(context)
    position = None
    if after is not None and not source.live and not is_restart(after):
        position = await resume_position(hub, after)
    jobs = _Jobs(context, context.caller.jobs(which), source, resumed=position is not None)
    async with aclosing(follow(hub, jobs, source, position)) as changes:
        async for change in changes:
            yield change


class _Jobs:
    """Tells of jobs that match a filter, and of those that no longer do: each revision once, the newest always."""

    coalesce = True

    def __init__(self, context: Context, which: Which, source: Source, *, resumed: bool) -> None:
        self._context = context
        self._which = which
        self._source = source
        self.jobs = frozenset(which.ids) if which.ids is not None else None
        self._projects = frozenset(which.projects) if which.projects is not None else None
        self._filters = which != Which(ids=which.ids, projects=which.projects)
        self._resumed = resumed or source.live or source.resume_at is not None
        self._ahead = source.ahead
        """Revisions that were sent before the row that tells of them came."""
        self._held: dict[JobId, bool] = {}
        """Jobs that the client holds, or does not; of others, after a resume, nobody knows."""

    def wants(self, row: FeedRow) -> bool:
        return (
            row.kind is FeedKind.JOB
            and (self.jobs is None or row.job in self.jobs)
            and (self._projects is None or row.project in self._projects)
        )

    async def snapshot(self, position: int) -> Sequence[Telling[JobChange]]:
        rows = await _matching(self._context, self._which)
        for row in rows:
            self._ahead[row.id] = row.revision
            self._hold(row.id)
        at, last = datetime.now(UTC), len(rows) - 1
        return [
            Telling(
                _change(feed_cursor(position) if index == last else restart_cursor(), ChangeKind.SNAPSHOT, row, at),
                Step(position, row.id, row.revision),
            )
            for index, row in enumerate(rows)
        ]

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[JobChange]]:
        self._context.renew()
        new = [(row, row.job) for row in rows if row.job and not self._was_sent(row, row.revision)]
        found = await self._read([row for row, _ in new]) if new else {}
        told = (self._tell_one(row, job, *found[job]) for row, job in new)
        return [change for change in told if change]

    def bookmark(self, position: int) -> JobChange:
        return bookmark(position)

    def forget(self) -> None:
        self._context.renew(afresh=True)

    async def _read(self, told: Sequence[FeedRow]) -> dict[JobId, tuple[domain.Job | None, bool]]:
        """Each job as it is now, or as the newest of the rows brought it, and whether it matches."""
        rows: dict[JobId, domain.Job | None] = _brought(told) if not self._filters else {}
        ids = list(dict.fromkeys(row.job for row in told if row.job and row.job not in rows))
        rows |= zip(ids, await self._context.loaders.jobs.load_many(ids), strict=True) if ids else ()
        if not self._filters:
            return {id_: (row, row is not None) for id_, row in rows.items()}
        found: dict[JobId, tuple[domain.Job | None, bool]] = {}
        while rows:
            # After the rows: one read later could be of a revision that matches again, and would be told as REMOVED.
            page = await self._page(tuple(rows))
            found |= {id_: (row, False) for id_, row in rows.items()} | {row.id: (row, True) for row in page}
            rows = await self._changed({id_: row for id_, row in rows.items() if not found[id_][1]})
        return found

    async def _page(self, ids: tuple[JobId, ...]) -> Sequence[domain.Job]:
        which, store = replace(self._which, ids=ids), self._context.ports.store
        page = await self._context.services.thread(store.job_page, which, JobOrder(), Window(len(ids)))
        return [row for _, row in page.rows]

    async def _changed(self, rows: Mapping[JobId, domain.Job | None]) -> dict[JobId, domain.Job | None]:
        """Jobs that did not match and are not what they were before: as the row was, they may have matched."""
        told = [id_ for id_ in rows if self._may_hold(id_)]
        if not told:
            return {}
        now = await self._context.services.thread(self._context.ports.store.jobs_by_id, told)
        return {id_: now.get(id_) for id_ in told if _revision(now.get(id_)) != _revision(rows[id_])}

    def _tell_one(self, row: FeedRow, id_: JobId, job: domain.Job | None, matches: bool) -> Telling[JobChange] | None:
        revision = job.revision if job else row.revision
        if self._was_sent(row, revision) or not (matches or self._may_hold(id_)):
            return None
        aspects, ahead = row.aspects, revision > row.revision
        if ahead:
            self._ahead[id_], aspects = revision, _ALL  # the rows between are not told, whatever they are about
        (self._hold if matches else self._let_go)(id_)
        kind = ChangeKind.UPDATED if matches else ChangeKind.REMOVED
        change = _change(feed_cursor(row.position), kind, job, row.at, aspects, job_id=id_)
        return Telling(change, Step(row.position, id_, revision, ahead, row.at.timestamp()))

    def _was_sent(self, row: FeedRow, revision: int) -> bool:
        if row.job is None:
            return True
        sent = self._ahead.get(row.job, -1)
        if sent <= row.revision:
            self._ahead.pop(row.job, None)
        return revision <= sent

    def _may_hold(self, job: JobId) -> bool:
        if not self._filters or self._source.unsettled():
            return True
        return self._held.get(job, self._resumed)

    def _hold(self, job: JobId) -> None:
        if self._filters:
            self._held[job] = True

    def _let_go(self, job: JobId) -> None:
        if self._filters and self._resumed and not self._source.unsettled():
            self._held[job] = False
            if len(self._held) > HELD_MAX:
                self._held = {job: True for job, held in self._held.items() if held}
        else:
            self._held.pop(job, None)


def _brought(rows: Sequence[FeedRow]) -> dict[JobId, domain.Job | None]:
    """The jobs that came with their newest row."""
    newest = {row.job: row for row in rows if row.job}
    return {job: brought for job, row in newest.items() if (brought := _now(row))}


def _now(row: FeedRow) -> domain.Job | None:
    try:
        return row.now() if row.now else None
    except ValueError:
        return None  # another version of StarForge wrote it: the table has it


def _revision(row: domain.Job | None) -> int:
    return row.revision if row else -1


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


def _change(
    cursor: str,
    kind: ChangeKind,
    row: domain.Job | None,
    at: datetime,
    aspects: frozenset[Aspect] = frozenset(),
    *,
    job_id: JobId | None = None,
) -> JobChange:
    id_ = row.id if row else job_id
    return JobChange(
        cursor=cursor,
        kind=kind,
        at=at,
        job_id=strawberry.ID(id_) if id_ else None,
        job=Job.of(row) if row else None,
        aspects=sorted(aspects),
    )


def bookmark(position: int) -> JobChange:
    """A step that says only that everything up to `position` was told."""
    return _change(feed_cursor(position), ChangeKind.BOOKMARK, None, datetime.now(UTC))
