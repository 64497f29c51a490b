"""Ask the database once for many: what operations load by, made when it is first asked for."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from strawberry.dataloader import DataLoader

from starforge.api.logs.reading import Ask, LogReader
from starforge.api.queue_lengths import QueueName, queue_lengths
from starforge.api.transport.pacing import PacedLoader, Together
from starforge.domain.changes import CapsuleRecord
from starforge.domain.job import Attempt, Job
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.observation import PodView
from starforge.domain.ports import Store
from starforge.domain.progress import Curve
from starforge.domain.queries import CurveRange, EventsAsked, LogRange, Page
from starforge.domain.timeline import Entry

Projects = tuple[str, ...]


class Loaders:
    """One for each operation, and a new one for each event of a subscription."""

    def __init__(self, store: Store, ask: Ask, lines: LogReader) -> None:
        self._store, self._ask, self._lines = store, ask, lines

    def _many(self, call: Callable[[Sequence[Any]], Any], default: Callable[[], Any]) -> DataLoader[Any, Any]:
        return self._by(lambda keys: self._ask(call, keys), default)

    def _by(
        self, ask: Callable[[Sequence[Any]], Awaitable[Mapping[Any, Any]]], default: Callable[[], Any]
    ) -> DataLoader[Any, Any]:
        together: Together[Any] = Together(ask)

        async def load(keys: list[Any]) -> list[Any]:
            found = await together(keys)
            return [found[key] if key in found else default() for key in keys]

        return PacedLoader(load)

    @cached_property
    def jobs(self) -> DataLoader[JobId, Job | None]:
        return self._many(self._store.jobs_by_id, _nothing)

    @cached_property
    def attempts(self) -> DataLoader[JobId, Sequence[Attempt]]:
        return self._many(self._store.attempts, list)

    @cached_property
    def pods(self) -> DataLoader[RunKey, Sequence[PodView]]:
        return self._many(self._store.pods, list)

    @cached_property
    def log_sources(self) -> DataLoader[RunKey, Sequence[LogSource]]:
        return self._many(self._store.log_sources, list)

    @cached_property
    def capsules(self) -> DataLoader[Digest, CapsuleRecord | None]:
        return self._many(self._store.capsules, _nothing)

    @cached_property
    def used_capsules(self) -> DataLoader[tuple[Projects, Digest], CapsuleRecord | None]:
        return self._many(lambda asked: _used_capsules(self._store, asked), _nothing)

    @cached_property
    def entries(self) -> DataLoader[str, Entry | None]:
        return self._many(self._store.entries, _nothing)

    @cached_property
    def metric_names(self) -> DataLoader[RunKey, Sequence[str]]:
        return self._many(self._store.metric_names, list)

    @cached_property
    def curves(self) -> DataLoader[tuple[CurveRange, RunKey], Sequence[Curve]]:
        return self._many(lambda asked: _curves(self._store, asked), list)

    @cached_property
    def log_lines(self) -> DataLoader[LogRange, Sequence[LogLine]]:
        return self._by(self._lines.ranges, list)

    @cached_property
    def queue_lengths(self) -> DataLoader[QueueName, int]:
        return self._many(lambda names: queue_lengths(self._store, names), int)

    @cached_property
    def entry_pages(self) -> DataLoader[EventsAsked, Page[Entry]]:
        return self._many(self._store.entry_pages, lambda: Page([], has_next=False, has_previous=False))


def _nothing() -> None:
    return None


def _used_capsules(
    store: Store, asked: Sequence[tuple[Projects, Digest]]
) -> Mapping[tuple[Projects, Digest], CapsuleRecord]:
    """Capsules that jobs of some projects use, asked for together where the projects are the same."""
    digests: dict[Projects, list[Digest]] = {}
    for projects, digest in asked:
        digests.setdefault(projects, []).append(digest)
    found = {projects: store.capsules(some, projects=projects) for projects, some in digests.items()}
    return {(projects, digest): one for projects, some in found.items() for digest, one in some.items()}


def _curves(
    store: Store, asked: Sequence[tuple[CurveRange, RunKey]]
) -> Mapping[tuple[CurveRange, RunKey], Sequence[Curve]]:
    """Curves of many runs, asked for together where the same is wanted of them."""
    runs: dict[CurveRange, list[RunKey]] = {}
    for which, run in asked:
        runs.setdefault(which, []).append(run)
    found = {which: store.metric_curves(some, which) for which, some in runs.items()}
    return {(which, run): curves for which, of_run in found.items() for run, curves in of_run.items()}
