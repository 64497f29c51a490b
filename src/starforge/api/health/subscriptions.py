"""Health live: what it is, then each change that people see, by the feed or by this gateway's own view."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api.context import Context, of_subscription, source_of
from starforge.api.cursors import feed_cursor
from starforge.api.enums import ChangeKind
from starforge.api.feed.stream import Telling, follow, resume_position
from starforge.api.health.change import HealthChange
from starforge.api.health.desk import SUBJECT, Known
from starforge.api.health.types import Health
from starforge.api.jobs.subscriptions import AFTER
from starforge.api.transport.source import Source, Step
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow


@strawberry.type
class HealthSubscriptions:
    @strawberry.subscription(
        description=(
            "Health: a snapshot, then each change of a status or of a check, so that a banner needs no polling."
        )
    )
    async def health(
        self, info: Info, after: Annotated[str | None, argument(AFTER)] = None
    ) -> AsyncGenerator[HealthChange, None]:
        context = of_subscription(info)
        hub, source = context.services.hub, source_of(context)
        if after is not None and not source.live:
            await resume_position(hub, after)
        # What gateways find themselves is in no feed, and another one may have told what lies before the cursor. So all
        # are told how it is first, which is also all that is left of what lies behind a cursor.
        teller = _Teller(context, source, ChangeKind.SNAPSHOT if after is None else ChangeKind.UPDATED)
        async with aclosing(follow(hub, teller, source, None)) as changes:
            async for change in changes:
                yield change


class _Teller:
    """Tells health as it is, each revision of this gateway once.

    Each is told ahead of its place, as there are several at one position: so whoever joins then is told it too.
    """

    coalesce = True
    jobs: frozenset[JobId] | None = None

    def __init__(self, context: Context, source: Source, first: ChangeKind) -> None:
        self._context, self._source, self._first = context, source, first
        self._told = 0

    def wants(self, row: FeedRow) -> bool:
        return row.kind is FeedKind.HEALTH

    async def snapshot(self, position: int) -> Sequence[Telling[HealthChange]]:
        known = await self._context.services.health.look()
        return [self._telling(known, position, self._first, known.at)]

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[HealthChange]]:
        self._context.renew()
        known = await self._context.services.health.look()
        if known.revision <= self._told:
            return ()
        return [self._telling(known, rows[-1].position, ChangeKind.UPDATED, rows[-1].at)]

    def bookmark(self, position: int) -> HealthChange:
        return HealthChange(cursor=feed_cursor(position), kind=ChangeKind.BOOKMARK, at=datetime.now(UTC), health=None)

    def forget(self) -> None:
        self._context.renew(afresh=True)

    def _telling(self, known: Known, position: int, kind: ChangeKind, at: datetime) -> Telling[HealthChange]:
        self._told = self._source.ahead[SUBJECT] = known.revision
        health = Health.of(known.health, self._context.ports.fleet.kind)
        change = HealthChange(cursor=feed_cursor(position), kind=kind, at=at, health=health)
        return Telling(change, Step(position, SUBJECT, known.revision, ahead=True, at=at.timestamp()))
