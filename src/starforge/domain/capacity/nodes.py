"""What a fleet tells of its nodes: their GPUs, what else Pods need there, who holds it, and what keeps new Pods off."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from starforge.domain.names import PlaygroundId, RunKey

UNLABELLED = "UNLABELLED"
"""The series of GPU nodes without the label: its name can't be a label value that a pool asks for by chance."""


class GpuSharing(StrEnum):
    WHOLE = "WHOLE"
    MIG = "MIG"
    TIME_SLICED = "TIME_SLICED"
    DYNAMIC_CLAIMS = "DYNAMIC_CLAIMS"


@dataclass(frozen=True)
class Taint:
    key: str
    value: str | None
    effect: str


@dataclass(frozen=True)
class Room:
    """What Pods take of a node: whole GPUs, CPU in thousandths of a core, memory in bytes, and Pods themselves."""

    gpus: int = 0
    cpu_millis: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: "Room") -> "Room":
        return Room(
            self.gpus + other.gpus,
            self.cpu_millis + other.cpu_millis,
            self.memory + other.memory,
            self.pods + other.pods,
        )

    def __sub__(self, other: "Room") -> "Room":
        return Room(
            self.gpus - other.gpus,
            self.cpu_millis - other.cpu_millis,
            self.memory - other.memory,
            self.pods - other.pods,
        )

    def holds(self, other: "Room") -> bool:
        """Whether `other` fits into it."""
        return (
            self.gpus >= other.gpus
            and self.cpu_millis >= other.cpu_millis
            and self.memory >= other.memory
            and self.pods >= other.pods
        )


@dataclass(frozen=True)
class Claim:
    """A Pod on a node that holds GPUs there, or that is a machine of ours.

    It counts until it has ended, also while it is `releasing` (asked to go). `run` and `playground` are None for a Pod
    that is not ours. `since` is when it was put on the node.
    """

    uid: str
    name: str
    namespace: str | None
    room: Room
    run: RunKey | None = None
    playground: PlaygroundId | None = None
    pool: str | None = None
    since: datetime | None = None
    releasing: bool = False


@dataclass(frozen=True)
class NodeView:
    """A node with GPUs or with a series label, or this machine on a fleet without nodes.

    `series` is the label's value, None without one. `gpus` are those there are (its capacity); `allocatable` is what it
    gives to Pods, of which those GPUs are healthy. `used` is what all Pods on it ask for, ours and others', counted as
    the scheduler counts them. `ready` is None when the node does not answer. `ready_changed_at` is when that changed,
    `ready_message` what it says of it. `cordoned_at` is None if that was not seen. `taints` are those that keep new
    Pods of ours off (NoSchedule, NoExecute), but for those that Kubernetes sets for what `ready` and `cordoned` say.
    `claims` are in order of their uid.
    """

    name: str
    series: str | None
    gpus: int
    allocatable: Room
    used: Room = Room()
    claims: tuple[Claim, ...] = ()
    ready: bool | None = True
    ready_message: str | None = None
    ready_changed_at: datetime | None = None
    cordoned: bool = False
    cordoned_at: datetime | None = None
    taints: tuple[Taint, ...] = ()
    logical: bool = False
    sharing: GpuSharing = GpuSharing.WHOLE
    product: str | None = None

    @property
    def series_name(self) -> str:
        return self.series or UNLABELLED


@dataclass(frozen=True)
class NodesSeen:
    """Nodes that are new or changed, and the names of those that are gone, as of `at`.

    With `whole`, `nodes` are all there are. It is told whole first, and then within a second of a change.
    """

    at: datetime
    nodes: tuple[NodeView, ...]
    gone: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class KnownNode:
    """A stored node; `position` is that of the feed's row that told of it last."""

    view: NodeView
    position: int
    seen_at: datetime


@dataclass(frozen=True)
class FleetNodes:
    """All nodes of a fleet as stored, by name, in name order; `gone` are names of those that went, with their position.

    `position` is that of the newest row of the feed about them. `heard_at` is when the observer last heard its fleet.
    """

    fleet: str
    nodes: Mapping[str, KnownNode]
    gone: Mapping[str, int]
    position: int
    heard_at: datetime | None

    @property
    def views(self) -> Iterator[NodeView]:
        return (known.view for known in self.nodes.values())

    def changed_after(self, position: int) -> Iterator[KnownNode]:
        """Nodes that were new or changed after a position of the feed."""
        return (known for known in self.nodes.values() if known.position > position)

    def gone_after(self, position: int) -> Iterator[str]:
        """Names of nodes that went after a position of the feed."""
        return (name for name, at in self.gone.items() if at > position)
