"""What a gateway knows of capacity: its fleet's nodes, what follows from them, and which jobs hold and wait."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from starforge.api.capacity.heard import Heard, heard
from starforge.api.capacity.live_jobs import LiveJobs, ToldJobs
from starforge.api.feed.hub import Hub
from starforge.api.health.desk import HealthDesk
from starforge.domain.actions.take_turns import until
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.capacity.view import HeldGpus, SeriesGpus, series_gpus
from starforge.domain.capacity.waiting import Demand, Placed, demands, placed
from starforge.domain.job import Job
from starforge.domain.names import JobId
from starforge.domain.ports import Ports

PAUSE_S = 0.2
"""From one look that changes ask for to the next, however many these are."""
PAUSE_MAX_S = 0.8
SHARE = 4
"""A look that takes long is made less often: so many times as long as it took lies between them, up to the maximum."""


class Ask(Protocol):
    """Makes a blocking call off the event loop, as `Services.thread` does."""

    async def __call__(self, call: Callable[..., Any], /, *args: Any) -> Any: ...


@dataclass(frozen=True)
class Made:
    """What follows from the nodes alone; `series` is None if the fleet never told of any."""

    nodes: FleetNodes | None
    series: tuple[SeriesGpus, ...] | None
    placed: Placed
    holding: frozenset[JobId]
    seen_at: datetime | None

    @classmethod
    def of(cls, nodes: FleetNodes | None) -> "Made":
        views = list(nodes.views) if nodes else []
        there = placed(views)
        series = tuple(series_gpus(views)) if nodes else None
        seen_at = max((node.seen_at for node in nodes.nodes.values()), default=None) if nodes else None
        return cls(nodes, series, there, frozenset(run.job for run, _ in there), seen_at)

    def is_of(self, nodes: FleetNodes | None) -> bool:
        """Whether it follows from these as well; when the fleet was heard has no say in it."""
        if nodes is None or self.nodes is None:
            return nodes is self.nodes
        return replace(nodes, heard_at=None) == replace(self.nodes, heard_at=None)


@dataclass(frozen=True)
class Known:
    """Capacity of a fleet as of `at`, with all up to `position` of the feed in it.

    `revision` grows whenever something changes that people are told. `jobs` are all that hold or wait, `demands` what waits, longest first. `until` says when a holder must have ended.
    """

    fleet: str
    position: int
    revision: int
    at: datetime
    nodes: FleetNodes | None
    made: Made
    jobs: Mapping[JobId, Job]
    demands: Sequence[Demand]
    heard: Heard
    until: Callable[[HeldGpus], datetime | None]

    def tells_as(self, other: "Known") -> bool:
        """Whether people are told the same by both."""
        return self.made is other.made and self._told == other._told

    @property
    def _told(self) -> object:
        held = [(job, self.jobs[job].attempt.clocks) for job in sorted(self.made.holding & self.jobs.keys())]
        return self.demands, held, replace(self.heard, observed_at=None)


class CapacityDesk:
    """One for each gateway. All is read and worked out once for everybody who asks at once, and only what has changed.

    `ask` makes a blocking call of the database off the event loop.
    """

    def __init__(self, ports: Ports, hub: Hub, ask: Ask, health: HealthDesk) -> None:
        self._ports, self._hub, self._ask, self._health = ports, hub, ask, health
        self._jobs, self._told = LiveJobs(ports.store), ToldJobs()
        self._leave: Callable[[], None] | None = None
        self._made: Made | None = None
        self._not_before = 0.0
        self._now: asyncio.Task[Known] | None = None
        self._next: asyncio.Task[Known] | None = None
        self.known: Known | None = None

    @property
    def fleet(self) -> str:
        """Its name."""
        return self._ports.fleet.name

    async def look(self) -> Known:
        """Capacity, looked at after this call began, and once for all who wait: all that the hub has told is in it.

        StoreUnavailable if the database can't be asked.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._look_after(self._now))
        return await asyncio.shield(self._next)

    async def look_soon(self) -> Known:
        """As `look`, but not too soon after another one, so that many changes are looked at together."""
        await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
        return await self.look()

    def close(self) -> None:
        """Hear of nothing more."""
        if self._leave is not None:
            self._leave()

    async def _look_after(self, before: "asyncio.Task[Known] | None") -> Known:
        if before is not None:
            await asyncio.wait([before])
        self._now, self._next = self._next, None  # who asks from now on, asks the next one
        began_at = time.monotonic()
        try:
            return await self._look()
        finally:
            took = time.monotonic() - began_at
            self._not_before = began_at + min(PAUSE_MAX_S, max(PAUSE_S, SHARE * took))

    async def _look(self) -> Known:
        if self._leave is None:
            self._leave = self._hub.listen(self._told)
        health = (self._health.known or await self._health.look()).health
        told, position = self._told.jobs(), self._hub.position
        try:
            nodes, made, jobs, waiting = await self._ask(self._read, told)
        except BaseException:
            self._told.give_back(told)
            raise
        self._made = made
        fresh = heard(nodes, made.seen_at, health)
        due = until(list(jobs.values()))
        now = Known(self.fleet, position, 1, self._ports.now(), nodes, made, jobs, waiting, fresh, due)
        before = self.known
        if before is not None:
            now = replace(now, revision=before.revision + (not now.tells_as(before)))
        self.known = now
        return now

    def _read(
        self, told: Collection[JobId] | None
    ) -> tuple[FleetNodes | None, Made, Mapping[JobId, Job], Sequence[Demand]]:
        nodes = self._ports.store.fleet_nodes(self.fleet)
        made = self._made if self._made and self._made.is_of(nodes) else Made.of(nodes)
        jobs = self._jobs.read(told, made.holding)
        return nodes, made, jobs, demands(jobs.values(), made.placed)
