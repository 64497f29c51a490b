"""The timeline of a job: our own events and Kubernetes', as entries that are upserted by id with counts."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from starforge.domain.deadlines import Clock
from starforge.domain.job import Actor, JobState
from starforge.domain.logs import LogState
from starforge.domain.names import RunKey
from starforge.domain.observation import PodPhase
from starforge.domain.reason import ObjectRef, Reason
from starforge.domain.teardown import Teardown


class EventType(StrEnum):
    STATE_CHANGED = "STATE_CHANGED"
    REASON_CHANGED = "REASON_CHANGED"
    ACTION_REQUESTED = "ACTION_REQUESTED"
    CLOCK_CHANGED = "CLOCK_CHANGED"
    POD_CHANGED = "POD_CHANGED"
    LOG_CHANGED = "LOG_CHANGED"
    TEARDOWN_CHANGED = "TEARDOWN_CHANGED"
    COMMAND_FAILED = "COMMAND_FAILED"
    FLEET_CHANGED = "FLEET_CHANGED"
    KUBERNETES = "KUBERNETES"


class Severity(StrEnum):
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


class Action(StrEnum):
    CREATE = "CREATE"
    CANCEL = "CANCEL"
    RETRY = "RETRY"
    READ_LOGS = "READ_LOGS"
    DOWNLOAD = "DOWNLOAD"


class CommandKind(StrEnum):
    """Work that can't be lost; each kind is one action of domain/actions."""

    PACKAGE = "PACKAGE"
    LAUNCH = "LAUNCH"
    CANCEL = "CANCEL"
    ARCHIVE = "ARCHIVE"
    TEARDOWN = "TEARDOWN"


@dataclass(frozen=True)
class StateChanged:
    after: JobState
    before: JobState | None
    reason: Reason | None = None
    type: Literal[EventType.STATE_CHANGED] = EventType.STATE_CHANGED


@dataclass(frozen=True)
class ReasonChanged:
    reason: Reason | None
    type: Literal[EventType.REASON_CHANGED] = EventType.REASON_CHANGED


@dataclass(frozen=True)
class ActionRequested:
    action: Action
    actor: Actor
    note: str | None = None
    type: Literal[EventType.ACTION_REQUESTED] = EventType.ACTION_REQUESTED


@dataclass(frozen=True)
class ClockChanged:
    clock: Clock
    type: Literal[EventType.CLOCK_CHANGED] = EventType.CLOCK_CHANGED


@dataclass(frozen=True)
class PodChanged:
    pod_uid: str
    phase: PodPhase
    type: Literal[EventType.POD_CHANGED] = EventType.POD_CHANGED


@dataclass(frozen=True)
class LogChanged:
    """`source` and `state` are None when it is about the archive as a whole."""

    source: str | None = None
    state: LogState | None = None
    type: Literal[EventType.LOG_CHANGED] = EventType.LOG_CHANGED


@dataclass(frozen=True)
class TeardownChanged:
    teardown: Teardown
    type: Literal[EventType.TEARDOWN_CHANGED] = EventType.TEARDOWN_CHANGED


@dataclass(frozen=True)
class CommandFailed:
    command: CommandKind
    tries: int
    parked: bool
    type: Literal[EventType.COMMAND_FAILED] = EventType.COMMAND_FAILED


@dataclass(frozen=True)
class FleetChanged:
    problem: str | None
    type: Literal[EventType.FLEET_CHANGED] = EventType.FLEET_CHANGED


@dataclass(frozen=True)
class KubernetesSeen:
    reason: str
    warning: bool
    object: ObjectRef
    reported_by: str | None = None
    pod_uid: str | None = None
    type: Literal[EventType.KUBERNETES] = EventType.KUBERNETES


Detail = (
    StateChanged
    | ReasonChanged
    | ActionRequested
    | ClockChanged
    | PodChanged
    | LogChanged
    | TeardownChanged
    | CommandFailed
    | FleetChanged
    | KubernetesSeen
)


@dataclass(frozen=True)
class Entry:
    """One entry. Written again under its `id` it is replaced, and told again; `run` is None for a fleet's."""

    id: str
    run: RunKey | None
    severity: Severity
    message: str
    first_at: datetime
    last_at: datetime
    detail: Detail
    count: int = 1
    fleet: str | None = None

    @property
    def type(self) -> EventType:
        return self.detail.type
