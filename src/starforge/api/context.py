"""What one operation works with: who asks, the ports, and loaders that ask the database once for many."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from strawberry import Info
from strawberry.dataloader import DataLoader

from starforge.api.feed.hub import Hub
from starforge.domain.changes import CapsuleRecord
from starforge.domain.errors import NotFound
from starforge.domain.job import Attempt, Job
from starforge.domain.logs import LogSource
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.observation import PodView
from starforge.domain.ports import Ports
from starforge.domain.rights import Caller
from starforge.domain.timeline import Entry

P = ParamSpec("P")
T = TypeVar("T")


class Services:
    """What every operation of a gateway shares. The store is synchronous: it is asked from threads."""

    def __init__(self, ports: Ports, hub: Hub, *, retention_s: int, threads: int = 8) -> None:
        self.ports = ports
        self.hub = hub
        self.retention_s = retention_s
        # Pools of their own, so that no pile of slow questions and no outage of one thing holds up the others.
        self._store = ThreadPoolExecutor(threads, thread_name_prefix="store")
        self._feed = ThreadPoolExecutor(2, thread_name_prefix="feed")
        self._objects = ThreadPoolExecutor(4, thread_name_prefix="objects")

    async def thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a blocking call of the database."""
        return await _threaded(self._store, lambda: call(*args, **kwargs))

    async def feed_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a blocking call about the feed."""
        return await _threaded(self._feed, lambda: call(*args, **kwargs))

    async def objects_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The answer of a blocking call that asks the object store."""
        return await _threaded(self._objects, lambda: call(*args, **kwargs))

    def close(self) -> None:
        for pool in (self._store, self._feed, self._objects):
            pool.shutdown(wait=False, cancel_futures=True)


async def _threaded(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, call)


class Loaders:
    """One for each operation, and a new one for each event of a subscription."""

    def __init__(self, services: Services) -> None:
        store = services.ports.store

        def many(ask: Callable[[Sequence[Any]], Any], default: Callable[[], Any]) -> Any:
            async def load(keys: list[Any]) -> list[Any]:
                found = await services.thread(ask, keys)
                return [found[key] if key in found else default() for key in keys]

            return load

        self.jobs: DataLoader[JobId, Job | None] = DataLoader(many(store.jobs_by_id, lambda: None))
        self.attempts: DataLoader[JobId, Sequence[Attempt]] = DataLoader(many(store.attempts, list))
        self.pods: DataLoader[RunKey, Sequence[PodView]] = DataLoader(many(store.pods, list))
        self.log_sources: DataLoader[RunKey, Sequence[LogSource]] = DataLoader(many(store.log_sources, list))
        self.capsules: DataLoader[Digest, CapsuleRecord | None] = DataLoader(many(store.capsules, lambda: None))
        self.entries: DataLoader[str, Entry | None] = DataLoader(many(store.entries, lambda: None))


@dataclass
class Context:
    """One operation's own."""

    caller: Caller
    services: Services
    began_at: datetime
    feed_position: int
    subscription: bool = False
    loaders: Loaders = field(init=False)

    def __post_init__(self) -> None:
        self.loaders = Loaders(self.services)

    def renew(self) -> None:
        """Forget what was loaded: for the next event it may be old."""
        self.loaders = Loaders(self.services)

    @property
    def ports(self) -> Ports:
        return self.services.ports

    async def job(self, job: JobId) -> Job:
        """The job; NotFound if there is none that the caller may see."""
        found = await self.loaders.jobs.load(job)
        if found is None:
            raise NotFound(f"There is no job {job}.")
        return found

    async def metric_names(self, run: RunKey) -> list[str]:
        return list(await self.services.thread(self.ports.store.metric_names, run))[:1000]


def of_subscription(info: Info[Any, Any]) -> Context:
    """The context of a subscription that begins."""
    context = of_info(info)
    context.subscription = True
    return context


def of_info(info: Info[Any, Any]) -> Context:
    """The context of the operation that is being resolved."""
    context: Context = info.context
    return context
