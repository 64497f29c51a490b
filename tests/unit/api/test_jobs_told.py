"""What a subscription to jobs tells: a client that applies it holds what matches, at the newest revision."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.context import Context, Services
from starforge.api.feed.hub import Hub
from starforge.api.feed.stream import Telling
from starforge.api.feed.types import JobChange
from starforge.api.jobs.subscriptions import _Jobs
from starforge.api.transport.source import Source
from starforge.domain.changes import Aspect
from starforge.domain.errors import SnapshotTooLarge
from starforge.domain.job import Actor, ActorKind, Job, new_attempt
from starforge.domain.names import JobId
from starforge.domain.ports import Ports
from starforge.domain.queries import FeedRow, JobFilter, JobOrder, Page, Window
from starforge.domain.rights import Caller, Role
from starforge.domain.spec import Deadlines, JobSpec, PoolSpec
from tests.unit.api.feeding import AT, Ears, Table, row

ME = Actor("ann", ActorKind.USER)
SPEC = JobSpec(
    name="in", project="default", fleet="home", description=None, image=None, command=("true",), env=(),
    pools=(PoolSpec("main", "h200", 1, 1, 1, "2Gi", "1Gi"),), deadlines=Deadlines(0, 0, 0), labels=(), priority=0,
    cancel_grace_seconds=30,
)  # fmt: skip


@dataclass
class Jobs:
    """A store that knows jobs alone, and of filters only the prefix of a name."""

    jobs: dict[JobId, Job] = field(default_factory=dict)
    feed: list[FeedRow] = field(default_factory=list)
    statements: int = 0

    def change(self, name: str, *, matches: bool) -> None:
        """The next revision of a job, with its row of the feed."""
        id_ = JobId(f"job-{name}")
        spec = replace(SPEC, name="in" if matches else "out")
        old = self.jobs.get(id_) or Job(id_, spec, AT, ME, AT, new_attempt(spec, 1, ME, AT))
        self.jobs[id_] = replace(old, spec=spec, revision=old.revision + 1)
        self.feed.append(replace(row(len(self.feed) + 1, id_), revision=old.revision + 1))

    def jobs_by_id(self, ids: Sequence[JobId]) -> Mapping[JobId, Job]:
        self.statements += 1
        return {id_: self.jobs[id_] for id_ in ids if id_ in self.jobs}

    def job_page(self, which: JobFilter, order: JobOrder, window: Window) -> Page[Job]:
        self.statements += 1
        found = [
            job
            for job in self.jobs.values()
            if job.spec.name.startswith(which.name_prefix or "") and (which.ids is None or job.id in which.ids)
        ]
        ids = [job.id for job in found]
        start = 0 if window.after is None else ids.index(JobId(str(window.after[0]))) + 1
        some = found[start : start + window.limit]
        return Page([((job.id,), job) for job in some], has_next=len(found) > start + window.limit, has_previous=False)

    def __getattr__(self, name: str) -> Any:
        if name in (
            "attempts",
            "pods",
            "log_sources",
            "capsules",
            "entries",
            "metric_names",
            "log_ranges",
            "entry_pages",
        ):
            return dict
        raise AttributeError(name)


def context_of(store: Jobs) -> Context:
    ports = cast("Ports", type("OnlyStore", (), {"store": store})())
    services = Services(ports, Hub(Table(), Ears().hear), retention_s=60)
    return Context(Caller(ME, Role.ADMIN), services, datetime.now(UTC), 0, subscription=True)


class Client:
    """Holds what it was told of, as the schema says that a client should."""

    def __init__(self) -> None:
        self.holds: dict[str, int] = {}
        self.changes: list[JobChange] = []

    def apply(self, changes: Sequence[JobChange]) -> None:
        for change in changes:
            self.changes.append(change)
            assert change.job is not None
            assert change.job_id is not None
            if change.kind == "REMOVED":
                self.holds.pop(change.job_id, None)
            else:
                self.holds[change.job_id] = change.job.revision

    def revisions(self, job: str) -> list[int]:
        return [change.job.revision for change in self.changes if change.job and change.job_id == job]


def changes_of(tellings: Sequence[Telling[JobChange]]) -> list[JobChange]:
    return [telling.change for telling in tellings]


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=10)


@given(data=st.data())
@pytest.mark.parametrize("prefix", [None, "in"])
@pytest.mark.parametrize("resumed", [False, True])
def test_a_client_ends_with_what_matches_at_its_newest_revision(
    prefix: str | None,
    resumed: bool,
    data: st.DataObject,
) -> None:
    which = JobFilter(name_prefix=prefix)
    store, client = Jobs(), Client()

    async def run() -> None:
        for name, matches in data.draw(STEPS):
            store.change(name, matches=matches)
        context = context_of(store)
        if resumed:  # what the client was told of on another gateway, before it lost the connection there
            before = _Jobs(context, which, Source(), resumed=False)
            client.apply(changes_of(await before.snapshot(len(store.feed))))
            client.changes.clear()
        jobs, told = _Jobs(context, which, Source(), resumed=resumed), len(store.feed)
        if not resumed:
            client.apply(changes_of(await jobs.snapshot(told)))
        for name, matches in data.draw(STEPS):
            store.change(name, matches=matches)
            if data.draw(st.booleans()):
                told = await tell(jobs, told)
        await tell(jobs, told)
        context.services.close()

    async def tell(jobs: _Jobs, told: int) -> int:
        context_rows = store.feed[told:]
        client.apply(changes_of(await jobs.tell(context_rows)) if context_rows else ())
        return len(store.feed)

    asyncio.run(run())
    matching = {job.id: job.revision for job in store.jobs.values() if job.spec.name.startswith(prefix or "")}
    assert client.holds == matching
    for job in store.jobs:
        assert client.revisions(job) == sorted(set(client.revisions(job)))


def test_jobs_that_never_matched_are_not_told_of() -> None:
    async def run() -> Sequence[JobChange]:
        store = Jobs()
        jobs = _Jobs(context_of(store), JobFilter(name_prefix="in"), Source(), resumed=False)
        store.change("a", matches=False)
        return changes_of(await jobs.tell(store.feed))

    assert asyncio.run(run()) == []


def test_many_rows_are_read_together() -> None:
    async def run() -> tuple[int, int]:
        store = Jobs()
        jobs = _Jobs(context_of(store), JobFilter(name_prefix="in"), Source(), resumed=False)
        for number in range(50):
            store.change(str(number), matches=True)
        return len(await jobs.tell(store.feed)), store.statements

    assert asyncio.run(run()) == (50, 2)


class Busy(Jobs):
    """A store in which a job begins to match, or stops, right after a look at it."""

    def __init__(self, look: str, *, matches: bool) -> None:
        super().__init__()
        self.look = look
        self.matches = matches

    def _looked(self, look: str) -> None:
        if look == self.look:
            self.look = ""
            self.change("a", matches=self.matches)

    def jobs_by_id(self, ids: Sequence[JobId]) -> Mapping[JobId, Job]:
        found = super().jobs_by_id(ids)
        self._looked("jobs_by_id")
        return found

    def job_page(self, which: JobFilter, order: JobOrder, window: Window) -> Page[Job]:
        page = super().job_page(which, order, window)
        self._looked("job_page")
        return page


@pytest.mark.parametrize("look", ["jobs_by_id", "job_page"])
@pytest.mark.parametrize("matches", [False, True])
def test_a_job_that_changes_between_two_looks_is_told_of_as_it_became(look: str, *, matches: bool) -> None:
    async def run() -> dict[str, int]:
        store, client = Busy(look, matches=matches), Client()
        store.change("a", matches=not matches)
        context = context_of(store)
        jobs = _Jobs(context, JobFilter(name_prefix="in"), Source(live=True), resumed=False)
        for position in range(2):
            client.apply(changes_of(await jobs.tell(store.feed[position : position + 1])))
        context.services.close()
        return client.holds

    assert asyncio.run(run()) == ({"job-a": 2} if matches else {})


def test_a_job_that_is_told_as_removed_looks_like_it() -> None:
    async def run() -> Sequence[JobChange]:
        store = Busy("jobs_by_id", matches=False)
        store.change("a", matches=True)
        jobs = _Jobs(context_of(store), JobFilter(name_prefix="in"), Source(live=True), resumed=False)
        return changes_of(await jobs.tell(store.feed[:1]))

    (change,) = asyncio.run(run())
    assert change.job is not None
    assert (change.kind, change.job.name, change.job.revision) == ("REMOVED", "out", 2)


def test_jobs_that_came_with_their_rows_are_not_read() -> None:
    async def run() -> tuple[Sequence[JobChange], int]:
        store = Jobs()
        store.change("a", matches=True)
        store.change("b", matches=True)
        a, b = store.jobs[JobId("job-a")], store.jobs[JobId("job-b")]
        rows = [replace(store.feed[0], now=lambda: a), replace(store.feed[1], now=lambda: b)]
        jobs = _Jobs(context_of(store), JobFilter(), Source(live=True), resumed=False)
        return changes_of(await jobs.tell(rows)), store.statements

    changes, statements = asyncio.run(run())
    assert [(change.job_id, change.job.revision) for change in changes if change.job] == [("job-a", 1), ("job-b", 1)]
    assert statements == 0


def test_a_job_that_came_in_a_form_nobody_can_read_is_read_from_the_table() -> None:
    def unreadable() -> Job:
        raise ValueError("of another version")

    async def run() -> Sequence[JobChange]:
        store = Jobs()
        store.change("a", matches=True)
        jobs = _Jobs(context_of(store), JobFilter(), Source(live=True), resumed=False)
        return changes_of(await jobs.tell([replace(store.feed[0], now=unreadable)]))

    assert [change.job_id for change in asyncio.run(run())] == ["job-a"]


def test_a_job_whose_record_is_gone_is_removed() -> None:
    async def run() -> JobChange:
        store = Jobs()
        jobs = _Jobs(context_of(store), JobFilter(), Source(), resumed=False)
        store.change("a", matches=True)
        store.jobs.clear()
        return (await jobs.tell(store.feed))[0].change

    change = asyncio.run(run())
    assert (change.kind, change.job_id, change.job) == ("REMOVED", "job-a", None)


@pytest.mark.parametrize(("count", "fits"), [(1000, True), (1001, False)])
def test_a_snapshot_has_an_end(count: int, *, fits: bool) -> None:
    async def run() -> int:
        store = Jobs()
        for number in range(count):
            store.change(str(number), matches=True)
        return len(await _Jobs(context_of(store), JobFilter(), Source(), resumed=False).snapshot(count))

    if fits:
        assert asyncio.run(run()) == count
    else:
        with pytest.raises(SnapshotTooLarge):
            asyncio.run(run())


def test_a_change_that_runs_ahead_of_its_row_is_about_everything() -> None:
    store = Jobs()
    for _ in range(3):
        store.change("a", matches=True)
    told = _Jobs(context_of(store), JobFilter(), Source(), resumed=True)
    changes = asyncio.run(_tell(told, store.feed))
    assert [(change.job.revision, set(change.aspects)) for change in changes if change.job] == [(3, set(Aspect))]


async def _tell(told: _Jobs, rows: Sequence[FeedRow]) -> Sequence[JobChange]:
    return changes_of(await told.tell(rows))
