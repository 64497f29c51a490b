"""Whether StarForge and its fleets can do their work: what is checked, and what is kept of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from starforge.domain.names import CommandId, RunKey
from starforge.domain.timeline import CommandKind


class HealthStatus(StrEnum):
    OK = "OK"
    DEGRADED = "DEGRADED"
    DOWN = "DOWN"
    UNKNOWN = "UNKNOWN"


class HealthCheckKind(StrEnum):
    DATABASE = "DATABASE"
    REDIS = "REDIS"
    OBJECT_STORE = "OBJECT_STORE"
    WORKERS = "WORKERS"
    BEAT = "BEAT"
    KUBERNETES_API = "KUBERNETES_API"
    RAYJOB_CRD = "RAYJOB_CRD"
    OPERATOR = "OPERATOR"
    RBAC = "RBAC"
    OBSERVER = "OBSERVER"
    STORAGE = "STORAGE"
    TEARDOWN = "TEARDOWN"


@dataclass(frozen=True)
class Finding:
    """What a check has just found.

    `message` says what is wrong and whose move it is, None when OK. `seconds` is how long the answer took, None if none
    came. `since` is when it became so, where that can be told from what was found.
    """

    kind: HealthCheckKind
    status: HealthStatus = HealthStatus.OK
    message: str | None = None
    seconds: float | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class HealthCheck:
    """A finding with its times: since when it has this status, and when it was last looked at."""

    kind: HealthCheckKind
    status: HealthStatus
    message: str | None
    since: datetime
    checked_at: datetime
    seconds: float | None = None


@dataclass(frozen=True)
class AccessCheck:
    """Whether our account may do one thing; `allowed` is None if that could not be asked."""

    verb: str
    resource: str
    allowed: bool | None


@dataclass(frozen=True)
class Access:
    """What our account was asked and answered."""

    asked_at: datetime
    checks: tuple[AccessCheck, ...]


@dataclass(frozen=True)
class FleetProbe:
    """What a fleet says of itself, right now; what is None was not told, or the fleet has no such thing."""

    findings: tuple[Finding, ...]
    kubernetes_version: str | None = None
    operator_version: str | None = None
    rayjob_api_version: str | None = None
    access: Access | None = None


PLATFORM = "platform"


def fleet_subject(fleet: str) -> str:
    return f"fleet.{fleet}"


@dataclass(frozen=True)
class HealthReport:
    """What was last found about a subject, PLATFORM or a fleet. `revision` is that of the row it was made from."""

    subject: str
    checks: tuple[HealthCheck, ...]
    checked_at: datetime
    revision: int = 0
    kubernetes_version: str | None = None
    operator_version: str | None = None
    rayjob_api_version: str | None = None
    access: Access | None = None


@dataclass(frozen=True)
class HealthWrite:
    """A report to be stored, StaleRevision if another one was since; with `told` the feed tells of it."""

    report: HealthReport
    told: bool


@dataclass(frozen=True)
class ObserverHeard:
    """What an observer last heard of its fleet: `at` when it could be asked, `lag_s` from what was seen to when that
    was stored, `problem` why it can't be asked right now."""

    at: datetime | None = None
    lag_s: float | None = None
    problem: str | None = None


@dataclass(frozen=True)
class ObserverLease:
    """Who observes a fleet, and until when unless that is renewed."""

    holder: str
    until: datetime
    heard: ObserverHeard = ObserverHeard()


@dataclass(frozen=True)
class CommandQueue:
    """Commands that are `due` and not done, and since when the oldest is; `waiting_since` that of those nobody does."""

    due: int = 0
    oldest_due_at: datetime | None = None
    waiting_since: datetime | None = None
    parked: int = 0


@dataclass(frozen=True)
class ParkedCommand:
    """A command that failed too often; `error` is what went wrong last."""

    id: CommandId
    kind: CommandKind
    run: RunKey
    tries: int
    last_tried_at: datetime
    error: str | None


@dataclass(frozen=True)
class HealthReading:
    """All that the database knows of health: reports by subject, and observers by fleet."""

    reports: Mapping[str, HealthReport]
    observers: Mapping[str, ObserverLease]
    commands: CommandQueue


@dataclass(frozen=True)
class FleetHealth:
    """Health of a fleet as people are told it."""

    fleet: str
    status: HealthStatus
    message: str | None
    checks: tuple[HealthCheck, ...]
    observer_lag_seconds: float | None
    kubernetes_version: str | None
    operator_version: str | None
    rayjob_api_version: str | None
    access: tuple[AccessCheck, ...] | None


@dataclass(frozen=True)
class Health:
    """Health of everything as people are told it; `checked_at` is that of the oldest check."""

    status: HealthStatus
    message: str | None
    checked_at: datetime
    checks: tuple[HealthCheck, ...]
    fleets: tuple[FleetHealth, ...]
    commands: CommandQueue
