"""The subscribers: of every kind, over both transports, many with equal documents, so that they share sources."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.integration.soak.documents import ALL_EVENTS, EVENTS, JOB, JOBS, LOGS, Asked
from tests.integration.soak.subscriber import Subscriber, until

FILTERS: Sequence[dict[str, Any] | None] = (
    None, {"active": True}, {"states": ["RUNNING"]}, {"active": False}, {"outcomes": ["FAILED"]},
    {"namePrefix": "late"},
)  # fmt: skip


def subscriptions(jobs: Sequence[str], head: str) -> Callable[[int], Asked]:
    """What the subscriber of a number asks: of 20, 1 all events, 5 some, 5 logs, 5 a job, 4 jobs."""

    def asked(number: int) -> Asked:
        turn, place = divmod(number, 20)
        job = jobs[(turn + place) % len(jobs)]
        if place == 0:
            return Asked("events", ALL_EVENTS, {}, after=head)
        if place < 6:
            which = [job] if place < 3 else [jobs[0], jobs[1]]
            return Asked("events", EVENTS, {"filter": {"workloads": which}}, after=head if place % 2 else None)
        if place < 11:
            return Asked("jobLogs", LOGS, {"id": job, **({"tail": 3} if place == 6 else {})})
        if place < 16:
            return Asked("job", JOB, {"id": job if place < 14 else jobs[0]})
        if place == 16:
            return Asked("jobs", JOBS, {"filter": {"ids": [*jobs[:3]]}})
        return Asked("jobs", JOBS, {"filter": FILTERS[(turn + place) % len(FILTERS)]})

    return asked


class Crowd:
    def __init__(self, members: Sequence[Subscriber]) -> None:
        self.members = members
        self._tasks: dict[Subscriber, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """All of them at work until the block ends."""
        self._tasks = {one: asyncio.create_task(one.follow(), name=one.name) for one in self.members}
        try:
            yield
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.wait(self._tasks.values())

    def raise_failures(self) -> None:
        for task in self._tasks.values():
            if task.done() and not task.cancelled():
                task.result()

    @property
    def deliveries(self) -> int:
        return sum(len(one.story.steps) for one in self.members)

    @property
    def resumes(self) -> int:
        return sum(one.story.resumes for one in self.members)

    @property
    def ends(self) -> Counter[str]:
        return sum((one.story.ends for one in self.members), Counter[str]())

    async def connected(self) -> None:
        """Return once everybody is told things again."""

        def all_are() -> bool:
            self.raise_failures()
            return all(one.is_done or one.connected.is_set() for one in self.members)

        await until(all_are, "Everybody is subscribed")

    async def told(self, count: int) -> None:
        """Return once they were told so many things more, all together."""
        wanted = self.deliveries + count

        def is_enough() -> bool:
            self.raise_failures()
            return self.deliveries >= wanted

        await until(is_enough, f"They are told {count} things")


def crowd(port: int, jobs: Sequence[str], head: str, count: int) -> Crowd:
    """Of each kind, about half over each transport."""
    asked = subscriptions(jobs, head)
    return Crowd([Subscriber(one, asked(one), port, over_sse=bool((one // 20 + one) % 2)) for one in range(count)])
