"""A fault: what is broken and mended, at which moment of a job, and what each job must come to all the same."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tests.e2e.faults.judging import Ending
from tests.e2e.faults.scene import Scene

Act = Callable[[Scene], Awaitable[None]]


class When(StrEnum):
    """The moment at which it strikes: before the jobs are submitted, or once they are in a state."""

    SUBMIT = "before submit"
    PENDING = "pending"
    RUNNING = "running"
    FINISHING = "archiving, teardown"


class Until(StrEnum):
    """When it is mended."""

    TIME = "after its time"
    TOLD = "once a job told of it, and after its time"
    ENDED = "once the jobs have ended"


@dataclass(frozen=True)
class Work:
    """A job under the fault: its code prints a line each half second for `seconds`; `spec` is laid over the usual one.

    `ends` are the endings that are right. With `may_miss`, lines may be missing if the archive says so.
    """

    ends: tuple[Ending, ...]
    name: str = "job"
    series: str = "h200"
    seconds: float = 20
    env: dict[str, str] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    worker: bool = False
    may_miss: bool = False


@dataclass(frozen=True)
class Fault:
    """`kind` names what it is one of: CI takes the `sample` of each kind, in short. `shows` are the codes one of which
    a job must tell because of it (none: nobody has to notice): the first `strikes_at` jobs, whose moment is awaited.
    `lasts_s` is from strike to heal; with `rounds`, jobs are submitted again until it is over.
    `needs` are files that the cluster must have below its home."""

    name: str
    kind: str
    when: When
    strike: Act
    heal: Act
    works: tuple[Work, ...]
    shows: frozenset[str] = frozenset()
    lasts_s: float = 10
    until: Until = Until.TIME
    limit_s: float = 420
    rounds: bool = False
    strikes_at: int = 100
    sample: bool = False
    short_s: float = 20
    short_works: int = 2
    needs_cluster: bool = True
    needs: tuple[str, ...] = ()

    def shortened(self) -> "Fault":
        """The same in small, for CI."""
        return replace(self, lasts_s=min(self.lasts_s, self.short_s), works=self.works[: self.short_works])


async def nothing(scene: Scene) -> None:
    """Of a fault that needs no mending, or that is the job's own."""
