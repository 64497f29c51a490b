"""Events live: each once and in order."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_subscription, source_of
from starforge.api.cursors import feed_cursor
from starforge.api.enums import ChangeKind
from starforge.api.events.types import event
from starforge.api.feed.stream import Telling, follow, resume_position
from starforge.api.feed.types import EventChange
from starforge.api.inputs import EventFilter
from starforge.api.transport.source import Step
from starforge.domain.queries import EventFilter as Which
from starforge.domain.queries import FeedKind, FeedRow
from starforge.domain.timeline import Entry, KubernetesSeen, Severity

_SEVERITIES = tuple(Severity)


@strawberry.type
class EventSubscriptions:
    @strawberry.subscription(
        description=(
            "Events that match, each once and in order; without a cursor only those from now on, as `Query.events` "
            "holds the past."
        )
    )
    async def events(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            EventFilter | None, argument("Which events; all that the caller may see if left out.")
        ] = None,
        after: Annotated[str | None, argument("Cursor to resume from, of this subscription or of `feed`.")] = None,
    ) -> AsyncGenerator[EventChange, None]:
        context, which = of_subscription(info), filter.which() if filter else Which()
        hub, source = context.services.hub, source_of(context)
        position = None if after is None or source.live else await resume_position(hub, after)
        events = _Events(context, context.caller.events(which))
        async with aclosing(follow(hub, events, source, position)) as changes:
            async for change in changes:
                yield change


class _Events:
    """Tells of entries that match a filter, each as it is now."""

    coalesce = False

    def __init__(self, context: Context, which: Which) -> None:
        self._context = context
        self._which = which
        self.jobs = frozenset(which.jobs) if which.jobs is not None else None

    def wants(self, row: FeedRow) -> bool:
        return row.kind is FeedKind.EVENT and _may_match(self._which, row)

    async def snapshot(self, position: int) -> Sequence[Telling[EventChange]]:
        return ()

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[EventChange]]:
        self._context.renew()
        loaders = self._context.loaders
        entries = await loaders.entries.load_many([row.subject for row in rows])
        if self._which.fleets is not None:  # for `_on_fleet`, all at once
            await loaders.jobs.load_many([entry.run.job for entry in entries if entry and entry.run])
        return [
            Telling(_change(row.position, row.at, entry), Step(row.position, at=row.at.timestamp()))
            for row, entry in zip(rows, entries, strict=True)
            if entry and matches(self._which, entry) and await self._on_fleet(entry)
        ]

    async def _on_fleet(self, entry: Entry) -> bool:
        """Whether an entry is of one of the fleets asked for, by itself or by its job."""
        fleets, fleet = self._which.fleets, entry.fleet
        if fleets is not None and fleet is None and entry.run is not None:
            job = await self._context.loaders.jobs.load(entry.run.job)
            fleet = job.spec.fleet if job else None
        return fleets is None or fleet in fleets

    def bookmark(self, position: int) -> EventChange:
        return _change(position, datetime.now(UTC), None)

    def forget(self) -> None:
        self._context.renew(afresh=True)


def _may_match(which: Which, row: FeedRow) -> bool:
    if which.jobs is not None and row.job not in which.jobs:
        return False
    return which.projects is None or row.project in which.projects


def matches(which: Which, entry: Entry) -> bool:
    """Whether an entry matches all of a filter that itself can tell, and its row of the feed can't."""
    reason = entry.detail.reason if isinstance(entry.detail, KubernetesSeen) else None
    return (
        (which.types is None or entry.type in which.types)
        and (which.min_severity is None or _severe(entry.severity) >= _severe(which.min_severity))
        and (which.attempt is None or (entry.run is not None and entry.run.attempt == which.attempt))
        and (which.kubernetes_reasons is None or reason in which.kubernetes_reasons)
        and (which.since is None or entry.last_at >= which.since)
        and (which.until is None or entry.first_at < which.until)
    )


def _severe(severity: Severity) -> int:
    return _SEVERITIES.index(severity)


def _change(position: int, at: datetime, entry: Entry | None) -> EventChange:
    return EventChange(
        cursor=feed_cursor(position),
        kind=ChangeKind.UPDATED if entry else ChangeKind.BOOKMARK,
        at=at,
        event=event(entry) if entry else None,
    )
