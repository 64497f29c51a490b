"""What one operation works with: who asks, the ports, and loaders that ask the database once for many."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from strawberry import Info

from starforge.api.budget import POINTS, POINTS_PER_S, Budget
from starforge.api.capacity.desk import CapacityDesk
from starforge.api.feed.hub import Hub
from starforge.api.health.desk import HealthDesk
from starforge.api.loaders import Loaders
from starforge.api.logs.reading import LogReader
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.source import Source
from starforge.domain.changes import CapsuleRecord
from starforge.domain.errors import NotFound
from starforge.domain.job import Attempt, Job
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.ports import Ports
from starforge.domain.rights import Caller
from starforge.domain.settled import confirmed_at
from starforge.domain.timeline import Entry

P = ParamSpec("P")
Projects = tuple[str, ...]
T = TypeVar("T")
POOLS = ("store", "feed", "objects")
"""What threads begin their names with that wait for something outside."""


class Services:
    """What every operation of a gateway shares. The store is synchronous: it is asked from threads."""

    def __init__(
        self,
        ports: Ports,
        hub: Hub,
        *,
        retention_s: int,
        web_url: str | None = None,
        threads: int = 8,
        limits: TransportLimits | None = None,
        budget: Budget | None = None,
        ping: Callable[[], None] | None = None,
    ) -> None:
        self.ports = ports
        self.hub = hub
        self.retention_s = retention_s
        self.web_url = web_url
        self.limits = limits or TransportLimits()
        self.budget = budget or Budget(maximum=POINTS, restore_per_second=POINTS_PER_S, clock=time.monotonic)
        # Pools of their own, so that no pile of slow questions and no outage of one thing holds up the others.
        store, feed, objects = POOLS
        self._store = ThreadPoolExecutor(threads, thread_name_prefix=store)
        self._feed = ThreadPoolExecutor(2, thread_name_prefix=feed)
        self._objects = ThreadPoolExecutor(4, thread_name_prefix=objects)
        self.log_reader = LogReader(ports, self.thread, self.objects_thread)
        self.health = HealthDesk(ports, hub, ping)
        self.capacity = CapacityDesk(ports, hub, self.thread, self.health)
        self._loaders: tuple[int, Loaders] | None = None

    async def thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a blocking call of the database."""
        return await _threaded(self._store, lambda: call(*args, **kwargs))

    async def feed_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a blocking call about the feed."""
        return await _threaded(self._feed, lambda: call(*args, **kwargs))

    async def objects_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a blocking call that asks the object store."""
        return await _threaded(self._objects, lambda: call(*args, **kwargs))

    def loaders(self, *, afresh: bool = False) -> Loaders:
        """What all live subscriptions load by, as long as the feed stands where it stands."""
        known = self._loaders
        if afresh or known is None or known[0] != self.hub.position:
            known = self._loaders = self.hub.position, self.new_loaders()
        return known[1]

    def new_loaders(self) -> Loaders:
        """What one operation loads by."""
        return Loaders(self.ports.store, self.thread, self.log_reader)

    def close(self) -> None:
        for pool in (self._store, self._feed, self._objects):
            pool.shutdown(wait=False, cancel_futures=True)
        self.health.close()
        self.capacity.close()


async def _threaded(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, call)


@dataclass
class Context:
    """One operation's own."""

    caller: Caller
    services: Services
    began_at: datetime
    feed_position: int
    subscription: bool = False
    source: Source | None = None
    loaders: Loaders = field(init=False)

    def __post_init__(self) -> None:
        self.loaders = self.services.new_loaders()

    def renew(self, *, afresh: bool = False) -> None:
        """Forget what was loaded: for the next event it may be old. `afresh` is for after an outage."""
        is_live = self.source is not None and self.source.live
        self.loaders = self.services.loaders(afresh=afresh) if is_live else self.services.new_loaders()

    def observed_at(self, attempt: Attempt, fleet: str | None) -> datetime | None:
        """When it was last known that an attempt on a fleet is as it is stored."""
        return confirmed_at(attempt, self.services.health.heard_at(fleet))

    @property
    def ports(self) -> Ports:
        return self.services.ports

    async def job(self, job: JobId) -> Job:
        """The job; NotFound if there is none that the caller may see."""
        found = await self.seen_job(job)
        if found is None:
            raise NotFound(f"There is no job {job}.")
        return found

    # Loaders may be shared by callers with other rights, so whatever a client names by its id is looked up by these.

    async def seen_job(self, job: JobId) -> Job | None:
        """The job; None if there is none that the caller may see."""
        found = await self.loaders.jobs.load(job)
        return found if found is not None and self.caller.sees(found.spec.project) else None

    async def seen_entry(self, entry: str) -> Entry | None:
        """The entry of a timeline; None if there is none that the caller may see."""
        found = await self.loaders.entries.load(entry)
        if found is None or found.run is None:
            return found if self.caller.sees(None) else None
        return found if await self.seen_job(found.run.job) else None

    async def seen_capsule(self, capsule: Digest) -> CapsuleRecord | None:
        """The Capsule; None if there is none that a job uses which the caller may see."""
        if self.caller.projects is None:
            return await self.loaders.capsules.load(capsule)
        return await self.loaders.used_capsules.load((tuple(sorted(self.caller.projects)), capsule))

    async def metric_names(self, run: RunKey) -> list[str]:
        return list(await self.loaders.metric_names.load(run))[:1000]


def of_subscription(info: Info[Any, Any]) -> Context:
    """The context of a subscription that begins."""
    context = of_info(info)
    context.subscription = True
    return context


def source_of(context: Context) -> Source:
    """Which part of a subscription is to be told; an opening for whoever runs the schema without the transport."""
    if context.source is None:
        context.source = Source()
    return context.source


def of_info(info: Info[Any, Any]) -> Context:
    """The context of the operation that is being resolved."""
    context: Context = info.context
    return context
