"""What the threads of an observer tell it."""

import threading
from dataclasses import dataclass
from enum import StrEnum
from queue import Full, Queue

from starforge.adapters.kube.labels import KubeObject
from starforge.domain.reason import ReasonCode


class Kind(StrEnum):
    RAYJOB = "RayJob"
    RAYCLUSTER = "RayCluster"
    POD = "Pod"
    JOB = "Job"
    EVENT = "Event"
    WORKLOAD = "Workload"
    NODE = "Node"
    CLAIM = "Claim"

    @property
    def plural(self) -> str:
        """What is watched, in words."""
        return "Pods of all namespaces" if self is Kind.CLAIM else f"{self}s"


@dataclass(frozen=True)
class Listed:
    """All objects of a kind: what is not among them is gone."""

    kind: Kind
    objects: list[KubeObject]


@dataclass(frozen=True)
class Changed:
    kind: Kind
    object: KubeObject
    deleted: bool = False


@dataclass(frozen=True)
class Heard:
    """Whether a kind can be watched, and of which kind the problem is if it can't."""

    kind: Kind
    problem: str | None = None
    code: ReasonCode = ReasonCode.API_UNAVAILABLE


@dataclass(frozen=True)
class NotServed:
    """A kind that jobs can do without is not there, or not for us to see; `why` for whoever reads our log."""

    kind: Kind
    why: str


@dataclass(frozen=True)
class LinesThere:
    """A log has lines to fetch, or has ended."""

    source: str


Message = Listed | Changed | Heard | NotServed | LinesThere
_AGAIN_S = 0.2


class Inbox:
    """Messages in order. Bounded: a thread that runs ahead of the observer waits, and gives up when all is halted."""

    def __init__(self, halted: threading.Event, size: int = 4096) -> None:
        self._halted = halted
        self.queue: Queue[Message] = Queue(size)

    def put(self, message: Message) -> None:
        while not self._halted.is_set():
            try:
                self.queue.put(message, timeout=_AGAIN_S)
            except Full:
                continue
            return
