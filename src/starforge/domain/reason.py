"""Why a job waits or ended: a code, a sentence, whose move it is, and what shows it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

TEXT_MAX = 2000


class ReasonCode(StrEnum):
    STARTING = "STARTING"
    USER_CODE = "USER_CODE"
    INVALID_SPEC = "INVALID_SPEC"
    CAPSULE_INVALID = "CAPSULE_INVALID"
    RUNTIME_ENV = "RUNTIME_ENV"
    IMAGE_PULL = "IMAGE_PULL"
    QUEUED = "QUEUED"
    UNSCHEDULABLE = "UNSCHEDULABLE"
    QUOTA = "QUOTA"
    VOLUME = "VOLUME"
    MISSING_REFERENCE = "MISSING_REFERENCE"
    ADMISSION_DENIED = "ADMISSION_DENIED"
    INIT_CRASH = "INIT_CRASH"
    OOM_KILLED = "OOM_KILLED"
    EVICTED = "EVICTED"
    PREEMPTED = "PREEMPTED"
    HEAD_LOST = "HEAD_LOST"
    NODE_LOST = "NODE_LOST"
    DELETED_OUTSIDE = "DELETED_OUTSIDE"
    PRERUNNING_DEADLINE = "PRERUNNING_DEADLINE"
    QUEUE_DEADLINE = "QUEUE_DEADLINE"
    ACTIVE_DEADLINE = "ACTIVE_DEADLINE"
    CANCELED = "CANCELED"
    OPERATOR_ABSENT = "OPERATOR_ABSENT"
    PERMISSION = "PERMISSION"
    API_UNAVAILABLE = "API_UNAVAILABLE"
    OBJECT_STORE_UNAVAILABLE = "OBJECT_STORE_UNAVAILABLE"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    TEARDOWN_BLOCKED = "TEARDOWN_BLOCKED"
    INTERNAL = "INTERNAL"


class ReasonOwner(StrEnum):
    USER = "USER"
    PLATFORM = "PLATFORM"
    CLUSTER = "CLUSTER"


class EvidenceSource(StrEnum):
    POD_CONDITION = "POD_CONDITION"
    POD_STATUS = "POD_STATUS"
    CONTAINER_STATE = "CONTAINER_STATE"
    RAYJOB_STATUS = "RAYJOB_STATUS"
    RAYCLUSTER_CONDITION = "RAYCLUSTER_CONDITION"
    KUBERNETES_EVENT = "KUBERNETES_EVENT"
    API_RESPONSE = "API_RESPONSE"
    EXIT_CODE = "EXIT_CODE"
    LOG = "LOG"
    CLOCK = "CLOCK"
    CHECK = "CHECK"


@dataclass(frozen=True)
class ObjectRef:
    """A Kubernetes object by name; `namespace` is None for objects that have none, `uid` if it was never seen."""

    kind: str
    name: str
    namespace: str | None = None
    uid: str | None = None


@dataclass(frozen=True)
class Evidence:
    """One observation that supports a reason; `text` as found, at most 2,000 characters, secrets removed."""

    source: EvidenceSource
    text: str
    observed_at: datetime
    object: ObjectRef | None = None
    path: str | None = None


@dataclass(frozen=True)
class Reason:
    """`patience_s` is how long a job that waits is held by it before it ends with it; None for until its clock."""

    code: ReasonCode
    message: str
    since: datetime
    advice: str | None = None
    whose: ReasonOwner = ReasonOwner.PLATFORM
    retryable: bool = False
    evidence: tuple[Evidence, ...] = ()
    patience_s: float | None = None

    @property
    def final_at(self) -> datetime | None:
        """When a job that it still holds ends with it."""
        return None if self.patience_s is None else self.since + timedelta(seconds=self.patience_s)


_OWNERS: dict[ReasonCode, tuple[ReasonOwner, bool]] = {
    ReasonCode.STARTING: (ReasonOwner.CLUSTER, False),
    ReasonCode.USER_CODE: (ReasonOwner.USER, False),
    ReasonCode.INVALID_SPEC: (ReasonOwner.USER, False),
    ReasonCode.CAPSULE_INVALID: (ReasonOwner.USER, False),
    ReasonCode.RUNTIME_ENV: (ReasonOwner.USER, True),
    ReasonCode.IMAGE_PULL: (ReasonOwner.USER, False),
    ReasonCode.QUEUED: (ReasonOwner.CLUSTER, True),
    ReasonCode.UNSCHEDULABLE: (ReasonOwner.CLUSTER, True),
    ReasonCode.QUOTA: (ReasonOwner.CLUSTER, True),
    ReasonCode.VOLUME: (ReasonOwner.CLUSTER, True),
    ReasonCode.MISSING_REFERENCE: (ReasonOwner.USER, False),
    ReasonCode.ADMISSION_DENIED: (ReasonOwner.CLUSTER, False),
    ReasonCode.INIT_CRASH: (ReasonOwner.PLATFORM, False),
    ReasonCode.OOM_KILLED: (ReasonOwner.USER, False),
    ReasonCode.EVICTED: (ReasonOwner.CLUSTER, True),
    ReasonCode.PREEMPTED: (ReasonOwner.CLUSTER, True),
    ReasonCode.HEAD_LOST: (ReasonOwner.CLUSTER, True),
    ReasonCode.NODE_LOST: (ReasonOwner.CLUSTER, True),
    ReasonCode.DELETED_OUTSIDE: (ReasonOwner.CLUSTER, True),
    ReasonCode.PRERUNNING_DEADLINE: (ReasonOwner.CLUSTER, True),
    ReasonCode.QUEUE_DEADLINE: (ReasonOwner.CLUSTER, True),
    ReasonCode.ACTIVE_DEADLINE: (ReasonOwner.USER, False),
    ReasonCode.CANCELED: (ReasonOwner.USER, True),
    ReasonCode.OPERATOR_ABSENT: (ReasonOwner.CLUSTER, True),
    ReasonCode.API_UNAVAILABLE: (ReasonOwner.CLUSTER, True),
    ReasonCode.OBJECT_STORE_UNAVAILABLE: (ReasonOwner.PLATFORM, True),
    ReasonCode.LAUNCH_FAILED: (ReasonOwner.PLATFORM, True),
}


def reason(
    code: ReasonCode,
    message: str,
    at: datetime,
    *,
    advice: str | None = None,
    evidence: tuple[Evidence, ...] = (),
    patience_s: float | None = None,
) -> Reason:
    """A reason whose owner and retryability follow from its code; `message` is cut to 2,000 characters."""
    whose, retryable = _OWNERS.get(code, (ReasonOwner.PLATFORM, False))
    return Reason(code, message[:TEXT_MAX], at, advice, whose, retryable, evidence[:10], patience_s)


def keep_since(new: Reason, old: Reason | None) -> Reason:
    """`old` if both tell the same, else `new`: a reason is as old as its story, and so is its evidence.

    One that ends a job in the end is as old as its code: another Pod with the same trouble buys no time.
    """
    if old is None or (not same_story(new, old) and (new.code is not old.code or new.patience_s is None)):
        return new
    same = same_story(new, old) and new.patience_s == old.patience_s
    return old if same else replace(new, since=old.since)


def same_story(one: Reason | None, other: Reason | None) -> bool:
    """Whether a person would read the same thing, whenever its evidence was seen."""
    return (one and (one.code, one.message, one.advice)) == (other and (other.code, other.message, other.advice))
