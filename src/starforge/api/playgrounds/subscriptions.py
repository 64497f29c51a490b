"""Playgrounds live: a snapshot at a position or what came after a cursor, then every change; and their logs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_subscription, source_of
from starforge.api.cursors import feed_cursor, is_restart, restart_cursor
from starforge.api.enums import ChangeKind
from starforge.api.feed.stream import Telling, follow, resume_position
from starforge.api.feed.types import LogChunk, PlaygroundChange
from starforge.api.jobs.subscriptions import AFTER, SNAPSHOT_MAX
from starforge.api.logs.subscriptions import follow_log
from starforge.api.playgrounds.inputs import PlaygroundFilter
from starforge.api.playgrounds.types import Playground
from starforge.api.transport.source import Source, Step
from starforge.domain import playground as domain
from starforge.domain.errors import SnapshotTooLarge
from starforge.domain.names import JobId, PlaygroundId
from starforge.domain.queries import FeedKind, FeedRow, Window
from starforge.domain.queries import PlaygroundFilter as Which

_ID = "Opaque id of the playground."


@strawberry.type
class PlaygroundSubscriptions:
    @strawberry.subscription(
        description="One playground: a snapshot, then its changes, coalesced to the newest when the reader is slow."
    )
    async def playground(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(_ID)],  # noqa: A002
        after: Annotated[str | None, argument(AFTER)] = None,
    ) -> AsyncGenerator[PlaygroundChange, None]:
        context, which = of_subscription(info), PlaygroundId(str(id))
        await context.playground(which)
        async with aclosing(_changes(context, Which(ids=(which,)), after)) as changes:
            async for change in changes:
                yield change

    @strawberry.subscription(
        description="Playgrounds that match: a snapshot, a bookmark, then changes, coalesced per playground."
    )
    async def playgrounds(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            PlaygroundFilter | None, argument("Which playgrounds; all that the caller may see if left out.")
        ] = None,
        after: Annotated[str | None, argument(AFTER)] = None,
    ) -> AsyncGenerator[PlaygroundChange, None]:
        context, which = of_subscription(info), filter.which() if filter else Which()
        async with aclosing(_changes(context, which, after)) as changes:
            async for change in changes:
                yield change

    @strawberry.subscription(description="Log lines of a playground, each once and in order, until the log is closed.")
    async def playground_logs(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument(_ID)],  # noqa: A002
        source: Annotated[str | None, argument("Key of a LogSource; the server's own log if left out.")] = None,
        after: Annotated[
            str | None,
            argument(
                "Cursor to resume from, of this subscription or of an edge of `Playground.logs`; from the first line if "
                "left out."
            ),
        ] = None,
        tail: Annotated[
            int | None, argument("Start this many lines before the end, 0 to 1,000; not together with `after`.")
        ] = None,
    ) -> AsyncGenerator[LogChunk, None]:
        context = of_subscription(info)
        row = await context.playground(PlaygroundId(str(id)))
        async with aclosing(follow_log(context, row.key, source or row.log, after, tail)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _changes(context: Context, which: Which, after: str | None) -> AsyncGenerator[PlaygroundChange, None]:
    hub, source = context.services.hub, source_of(context)
    position = None
    if after is not None and not source.live and not is_restart(after):
        position = await resume_position(hub, after)
    teller = _Playgrounds(context, context.caller.playgrounds(which), source, resumed=position is not None)
    async with aclosing(follow(hub, teller, source, position)) as changes:
        async for change in changes:
            yield change


class _Playgrounds:
    """Tells of playgrounds that match a filter, and of those that no longer do: each revision once, the newest always.

    They are few: each is read as it is now, and compared with the filter here.
    """

    coalesce = True

    def __init__(self, context: Context, which: Which, source: Source, *, resumed: bool) -> None:
        self._context, self._which, self._source = context, which, source
        self.jobs = None if which.ids is None else frozenset(JobId(one) for one in which.ids)
        self._resumed = resumed or source.live or source.resume_at is not None
        self._ahead = source.ahead
        self._held: dict[str, bool] = {}

    def wants(self, row: FeedRow) -> bool:
        which = self._which
        return (
            row.kind is FeedKind.PLAYGROUND
            and (self.jobs is None or row.job in self.jobs)
            and (which.projects is None or row.project in which.projects)
        )

    async def snapshot(self, position: int) -> Sequence[Telling[PlaygroundChange]]:
        rows = await self._matching()
        for row in rows:
            self._ahead[row.id], self._held[row.id] = row.revision, True
        at, last = datetime.now(UTC), len(rows) - 1
        cursors = [feed_cursor(position) if index == last else restart_cursor() for index in range(len(rows))]
        return [
            Telling(_change(cursor, ChangeKind.SNAPSHOT, row, at, row.id), Step(position, row.id, row.revision))
            for cursor, row in zip(cursors, rows, strict=True)
        ]

    async def _matching(self) -> list[domain.Playground]:
        context, rows, after = self._context, list[domain.Playground](), None
        while True:
            ask = context.ports.store.playground_page
            page = await context.services.thread(ask, self._which, Window(100, after=after))
            rows += [row for _, row in page.rows]
            if not page.has_next:
                return rows
            if len(rows) >= SNAPSHOT_MAX:
                message = "More than 1,000 playgrounds match: query a page and subscribe after its feed cursor."
                raise SnapshotTooLarge(message)
            after = page.rows[-1][0]

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[PlaygroundChange]]:
        self._context.renew()
        new = [row for row in rows if not self._was_sent(row, row.revision)]
        ids = [PlaygroundId(row.subject) for row in new]
        found = await self._context.loaders.playgrounds.load_many(ids) if ids else []
        told = (self._tell_one(row, one) for row, one in zip(new, found, strict=True))
        return [telling for telling in told if telling]

    def _tell_one(self, row: FeedRow, one: domain.Playground | None) -> Telling[PlaygroundChange] | None:
        id_, revision = row.subject, one.revision if one else row.revision
        matching = one is not None and matches(self._which, one)
        if self._was_sent(row, revision) or not (matching or self._may_hold(id_)):
            return None
        ahead = revision > row.revision
        if ahead:
            self._ahead[id_] = revision
        self._held[id_] = matching
        kind = ChangeKind.UPDATED if matching else ChangeKind.REMOVED
        change = _change(feed_cursor(row.position), kind, one, row.at, id_)
        return Telling(change, Step(row.position, id_, revision, ahead, row.at.timestamp()))

    def _was_sent(self, row: FeedRow, revision: int) -> bool:
        sent = self._ahead.get(row.subject, -1)
        if sent <= row.revision:
            self._ahead.pop(row.subject, None)
        return revision <= sent

    def _may_hold(self, id_: str) -> bool:
        return self._source.unsettled() or self._held.get(id_, self._resumed)

    def bookmark(self, position: int) -> PlaygroundChange:
        return _change(feed_cursor(position), ChangeKind.BOOKMARK, None, datetime.now(UTC), None)

    def forget(self) -> None:
        self._context.renew(afresh=True)


def matches(which: Which, one: domain.Playground) -> bool:
    """Whether a playground is one of those that a filter means: the same as the database finds."""
    machine = one.spec.machine
    return (
        (which.ids is None or one.id in which.ids)
        and (which.states is None or one.state in which.states)
        and (which.active is None or which.active is not one.ended)
        and (which.projects is None or machine.project in which.projects)
        and (which.fleets is None or machine.fleet in which.fleets)
        and (which.created_by is None or one.created_by.name in which.created_by)
        and (which.from_job is None or one.spec.from_job == which.from_job)
    )


def _change(
    cursor: str, kind: ChangeKind, row: domain.Playground | None, at: datetime, id_: str | None
) -> PlaygroundChange:
    return PlaygroundChange(
        cursor=cursor,
        kind=kind,
        at=at,
        playground_id=strawberry.ID(id_) if id_ else None,
        playground=Playground.of(row) if row else None,
    )
