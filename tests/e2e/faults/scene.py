"""Where a fault strikes: our processes, the cluster if there is one, and the jobs that are under way."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.faults.cluster import Cluster
from tests.e2e.faults.following import Story
from tests.e2e.faults.processes import Killer
from tests.e2e.faults.registry import EmptyRegistry
from tests.e2e.faults.site import Site
from tests.e2e.faults.webhook import Webhook


@dataclass
class UnderWay:
    """A job that was submitted; its code prints `lines` and leaves its marks in a folder of its own."""

    story: Story
    marks: Path
    lines: int

    def lines_to_come(self) -> int:
        """What its code has not noted as printed yet."""
        printed = [path.read_text().count("\n") for path in self.marks.glob("printed-*")]
        return self.lines - max(printed, default=0)


@dataclass
class Scene:
    """One fault's; `kept` is what its strike leaves for its heal to take back, `problems` what was seen to be wrong."""

    site: Site
    there: Cluster | None
    seed: int
    struck_at: float = 0
    jobs: list[UnderWay] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    webhook: Webhook | None = None
    registry: EmptyRegistry | None = None
    killer: Killer | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        if self.there is None:
            raise RuntimeError("this fault needs a Kubernetes cluster")
        return self.there

    @property
    def job(self) -> str:
        """The first job's id, which is the one that most faults are about."""
        return self.jobs[0].story.id

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that goes on until the jobs are judged."""
        self._tasks.append(asyncio.create_task(work))

    async def end_tasks(self) -> None:
        """End what still goes on; what has failed is a problem."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self.problems += [f"{type(why).__name__}: {why}"[:600] for why in ended if isinstance(why, Exception)]
        self._tasks.clear()


def say(text: str) -> None:
    """Progress, for a person."""
    sys.stderr.write(f"[{time.strftime('%X')}] {text}\n")
    sys.stderr.flush()
