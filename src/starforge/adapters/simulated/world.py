"""The made-up cluster: its nodes, its seed, and how fast its time goes."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from random import Random

from starforge.domain.names import RunKey


@dataclass(frozen=True)
class FakeNode:
    """A machine that does not exist: `series` is what pools ask for, the rest is how much it has."""

    name: str
    series: str
    gpus: int
    cpus: int


def default_nodes(*, h200: int = 40, b200: int = 24) -> tuple[FakeNode, ...]:
    """Nodes of two series with 8 GPUs each."""
    return tuple(
        FakeNode(f"{series}-{number:02}", series, gpus=8, cpus=cpus)
        for series, count, cpus in (("h200", h200, 192), ("b200", b200, 224))
        for number in range(1, count + 1)
    )


@dataclass(frozen=True, eq=False)
class World:
    """What every timeline depends on. A simulated second takes 1/`speed` seconds of the clock."""

    seed: int = 0
    speed: float = 1.0
    nodes: tuple[FakeNode, ...] = field(default_factory=default_nodes)
    namespace: str = "simulated"

    @cached_property
    def series(self) -> frozenset[str]:
        return frozenset(node.series for node in self.nodes)

    def after(self, start: datetime, seconds: float) -> datetime:
        """The time that is `seconds` simulated seconds after `start`."""
        return start + timedelta(seconds=seconds / self.speed)

    def chance(self, run: RunKey, topic: str) -> Random:
        """Chance that falls the same way in every process, for one run and topic."""
        return Random(f"{self.seed}/{run}/{topic}")  # noqa: S311 - repeatable on purpose, nothing secret
