"""Capacity live: what it is, then what changes, coalesced, with only the nodes that changed."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.capacity.change import CapacityChange
from starforge.api.capacity.desk import Known
from starforge.api.capacity.live_jobs import holds_or_waits_otherwise
from starforge.api.capacity.nodes import NODES_MAX, GpuNode
from starforge.api.capacity.types import FleetCapacity
from starforge.api.context import Context, of_subscription, source_of
from starforge.api.cursors import feed_cursor
from starforge.api.enums import ChangeKind
from starforge.api.feed.stream import Telling, follow, resume_position
from starforge.api.jobs.subscriptions import AFTER
from starforge.api.transport.source import Source, Step
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow


@strawberry.type
class CapacitySubscriptions:
    @strawberry.subscription(
        description=(
            "Capacity of one or all fleets: a snapshot of each, a bookmark, then changes within a second of the "
            "cluster's, coalesced per fleet."
        )
    )
    async def capacity(
        self,
        info: Info,
        fleet: Annotated[str | None, argument("Name of one fleet; every fleet if left out.")] = None,
        after: Annotated[str | None, argument(AFTER)] = None,
    ) -> AsyncGenerator[CapacityChange, None]:
        context = of_subscription(info)
        services, source = context.services, source_of(context)
        position = None
        if after is not None and not source.live:
            position = await resume_position(services.hub, after)
        # Who waits, and how well the fleet is heard, is in no row about nodes. So all are told how it is first, of the
        # nodes only those that changed behind a cursor.
        teller = _Teller(context, source, fleet, position)
        async with aclosing(follow(services.hub, teller, source, None)) as changes:
            async for change in changes:
                yield change


class _Teller:
    """Tells of the fleet as the desk knows it, each revision of the desk once, and of nodes that changed since.

    Each is told ahead of its place, as there are several at one position: so whoever joins then is told it too. For
    whoever was told up to a place, a step has all nodes that changed after it, and some may come twice.
    """

    coalesce = True
    jobs: frozenset[JobId] | None = None

    def __init__(self, context: Context, source: Source, fleet: str | None, after: int | None) -> None:
        self._context, self._source, self._after = context, source, after
        self._desk = context.services.capacity
        self._subject = f"capacity.{self._desk.fleet}"
        self._is_asked = fleet in (None, self._desk.fleet)
        self._told = 0
        self._place = context.services.hub.position if source.resume_at is None else source.resume_at

    def wants(self, row: FeedRow) -> bool:
        is_about_nodes = row.kind is FeedKind.CAPACITY and row.subject == self._desk.fleet
        may = is_about_nodes or row.kind is FeedKind.HEALTH or holds_or_waits_otherwise(row)
        return self._is_asked and may

    async def snapshot(self, position: int) -> Sequence[Telling[CapacityChange]]:
        if not self._is_asked:
            return ()
        known, self._place = await self._desk.look(), position
        if self._after is None:
            return [self._telling(known, position, ChangeKind.SNAPSHOT, known.at, 0)]
        return [self._telling(known, position, ChangeKind.UPDATED, known.at, self._after)]

    async def tell(self, rows: Sequence[FeedRow]) -> Sequence[Telling[CapacityChange]]:
        known = self._desk.known
        if known is None or known.position < rows[-1].position or any(row.kind is FeedKind.HEALTH for row in rows):
            known = await (self._desk.look_soon() if self._source.live else self._desk.look())
        if known.revision <= self._told:
            return ()
        place, self._place = self._place, rows[-1].position
        return [self._telling(known, rows[-1].position, ChangeKind.UPDATED, rows[-1].at, place)]

    def bookmark(self, position: int) -> CapacityChange:
        return CapacityChange(
            cursor=feed_cursor(position),
            kind=ChangeKind.BOOKMARK,
            at=datetime.now(UTC),
            fleet=None,
            changed_nodes=[],
            removed_node_ids=[],
        )

    def forget(self) -> None:
        self._context.renew(afresh=True)

    def _telling(
        self, known: Known, position: int, kind: ChangeKind, at: datetime, after: int
    ) -> Telling[CapacityChange]:
        self._told = self._source.ahead[self._subject] = known.revision
        nodes = known.nodes
        whole = kind is ChangeKind.SNAPSHOT
        changed = [GpuNode.of(node, known) for node in nodes.changed_after(-1 if whole else after)] if nodes else []
        gone = sorted(nodes.gone_after(after)) if nodes and not whole else []
        change = CapacityChange(
            cursor=feed_cursor(position),
            kind=kind,
            at=at,
            fleet=FleetCapacity.of(known, self._context.ports.fleet),
            changed_nodes=changed[:NODES_MAX],
            removed_node_ids=[strawberry.ID(ids.node(known.fleet, name)) for name in gone],
        )
        return Telling(change, Step(position, self._subject, known.revision, ahead=True, at=at.timestamp()))
