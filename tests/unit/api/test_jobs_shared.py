"""Many subscribers of the same jobs: whenever they come, are blocked or come back, each ends with what matches."""

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from starforge.api.context import Context
from starforge.api.feed.stream import follow
from starforge.api.jobs.subscriptions import _Jobs
from starforge.api.transport.following import Following
from starforge.api.transport.groups import Groups
from starforge.api.transport.source import Joint, Source
from starforge.domain.queries import FeedRow, JobFilter
from tests.unit.api.feeding import Blockable, Table
from tests.unit.api.test_jobs_told import Jobs, context_of

WHICH = JobFilter(name_prefix="in")


class FeedOfJobs(Table):
    """The feed of a store of jobs."""

    def __init__(self, store: Jobs) -> None:
        super().__init__()
        self._store = store

    async def bounds(self) -> tuple[int, int]:
        return 0, len(self._store.feed)

    async def rows(self, after: int, limit: int) -> list[FeedRow]:
        return self._store.feed[after : after + limit]


class Subscriber(Blockable):
    """Holds what it was told of, as the schema says that a client should; resumes where another one ended."""

    def __init__(self, context: Context, groups: Groups, before: "Subscriber | None") -> None:
        self.holds: dict[str, int] = dict(before.holds) if before else {}
        self.revisions: dict[str, list[int]] = {}
        self.cursor: int | None = before.cursor if before else None
        super().__init__()
        after, hub = self.cursor, context.services.hub

        async def run(source: Source) -> AsyncGenerator[dict[str, Any], None]:
            own = Context(context.caller, context.services, context.began_at, 0, subscription=True)
            own.source = source
            jobs = _Jobs(own, WHICH, source, resumed=after is not None)
            async with aclosing(follow(hub, jobs, source, after)) as changes:
                async for change in changes:
                    step = source.step
                    assert step is not None
                    yield {
                        "kind": change.kind,
                        "until": step.until if change.kind != "SNAPSHOT" else None,
                        "id": change.job_id,
                        "revision": change.job.revision if change.job else None,
                    }

        self.following = Following(self, run, str(after), groups.group("the same", run))
        self.tasks = [asyncio.create_task(self.following.begin())]

    def next(self, payload: bytes) -> None:
        told = json.loads(payload)
        if told["until"] is not None:
            self.cursor = told["until"]
        if told["kind"] == "BOOKMARK":
            return
        seen = self.revisions.setdefault(told["id"], [])
        assert not seen or seen[-1] < told["revision"], (told, seen)
        seen.append(told["revision"])
        if told["kind"] == "REMOVED":
            self.holds.pop(told["id"], None)
        else:
            self.holds[told["id"]] = told["revision"]

    def fell_behind(self, joint: Joint) -> None:
        self.start(self.following.catch_up(joint))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    def ended(self, refused: object) -> None:
        raise AssertionError(refused)


STEPS = ["change", "change", "hear", "join", "resume", "block", "unblock", "wait", "wait"]


class World:
    """Jobs that change, a hub that hears of it when it does, and subscribers that come and go."""

    def __init__(self) -> None:
        self.store = Jobs()
        self.context = context_of(self.store)
        self.hub = self.context.services.hub
        self.hub._table = FeedOfJobs(self.store)
        self.groups, self.there = Groups(), list[Subscriber]()

    async def step(self, data: st.DataObject) -> None:
        match data.draw(st.sampled_from(STEPS)):
            case "change":
                self.store.change(data.draw(st.sampled_from("ab")), matches=data.draw(st.booleans()))
            case "hear":
                await self.hub._heard(None)
            case "join":
                self.there.append(Subscriber(self.context, self.groups, None))
            case "resume" if self.there:
                gone = self.there.pop(data.draw(st.integers(0, len(self.there) - 1)))
                await leave(gone)
                before = gone if gone.cursor is not None else None
                self.there.append(Subscriber(self.context, self.groups, before))
            case "block" | "unblock" as what if self.there:
                getattr(data.draw(st.sampled_from(self.there)), what)()
            case _:
                await asyncio.sleep(data.draw(st.sampled_from([0, 0.001])))

    async def end(self) -> None:
        for one in self.there:
            one.unblock()
        await self.hub._heard(None)
        matching = {job.id: job.revision for job in self.store.jobs.values() if job.spec.name == "in"}
        async with asyncio.timeout(20):
            while any(one.holds != matching for one in self.there):  # noqa: ASYNC110  there is no event to wait for
                await asyncio.sleep(0.002)
        for one in self.there:
            await leave(one)
        self.context.services.close()
        assert (len(self.groups), self.hub.listeners) == (0, 0)


@given(data=st.data())
def test_each_ends_with_what_matches_at_its_newest_revision(data: st.DataObject) -> None:
    async def run() -> None:
        world = World()
        for _ in range(data.draw(st.integers(1, 16))):
            await world.step(data)
        await world.end()

    asyncio.run(run())


async def leave(subscriber: Subscriber) -> None:
    for task in subscriber.tasks:
        task.cancel()
    for outcome in await asyncio.gather(*subscriber.tasks, return_exceptions=True):
        assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome
    subscriber.following.end()
    await asyncio.sleep(0.002)
