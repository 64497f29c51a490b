"""What can go wrong, as one tree.

StarForgeError                      code (an `ErrorCode` of the schema), retryable, a sentence for the person it reaches
├── UserMistake                     BAD_USER_INPUT: the caller can put it right; carries `problems`, one per field
│   ├── SpecRefused                 the spec can't run as it is
│   ├── Unsatisfiable               no fleet could ever place the spec; carries the `fit` that says why
│   ├── CodeRefused                 the code can't be taken as it is
│   ├── Conflict                    an idempotency key was used with another body
│   ├── WrongState                  the job is not in a state that allows this
│   └── SettingsWrong               a FORGE_* setting is missing or wrong
├── NotFound                        NOT_FOUND: no such object that the caller may see
├── Unauthenticated                 UNAUTHENTICATED: no valid token
├── Forbidden                       FORBIDDEN: the token does not allow this
├── Throttled                       THROTTLED, retryable: the caller's points are spent; `retry_after_s` says how long
├── BeyondBudget                    DOCUMENT_TOO_EXPENSIVE: it costs more points than the caller ever has at once
├── FeedError
│   ├── CursorExpired               CURSOR_EXPIRED: query again, then subscribe after the new cursor
│   ├── CursorInvalid               CURSOR_INVALID: not a cursor of ours
│   ├── SlowConsumer                SLOW_CONSUMER, retryable: resume from `cursor`
│   └── SnapshotTooLarge            SNAPSHOT_TOO_LARGE: query pages, then subscribe after the feed cursor
├── Outside                         UNAVAILABLE, retryable: something outside can't be asked right now
│   ├── FleetUnavailable            the Kubernetes API, or the machine of a local fleet
│   ├── ObjectStoreUnavailable      S3, or the directory
│   ├── RedisUnavailable            Redis, which only health asks in this way
│   ├── IssuerUnavailable           the issuer of JWTs
│   ├── StoreUnavailable            the database
│   └── TookTooLong                 TIMEOUT: a question to the database was given up
├── FleetRefused                    final: the fleet answered no; carries the reason that the job gets
└── Defect                          INTERNAL_SERVER_ERROR: a mistake of ours
    ├── IllegalMove                 a move that the state table does not have
    ├── Superseded                  somebody else observes the fleet now; leave it to them
    └── StaleRevision               retryable: somebody else changed the job first; load and decide again
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starforge.domain.capacity.fit import FleetFit
    from starforge.domain.reason import Reason


@dataclass(frozen=True)
class Problem:
    """One thing that the caller can put right.

    `field` is the path from the spec or the code on, list indexes as decimal strings; `code` is a `UserErrorCode`;
    `rule` and `file` are set for code that is refused.
    """

    code: str
    field: tuple[str, ...]
    message: str
    file: str | None = None
    rule: str | None = None


class StarForgeError(Exception):
    """Anything of this tree; `str()` of it is the sentence for a person."""

    code = "INTERNAL_SERVER_ERROR"
    retryable = False

    def __init__(self, message: str, *, retry_after_s: float | None = None, cursor: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s
        self.cursor = cursor


class UserMistake(StarForgeError):
    code = "BAD_USER_INPUT"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


class SpecRefused(UserMistake): ...


class Unsatisfiable(UserMistake):
    """`fit` is the report of the fleet, whose verdict is NEVER."""

    def __init__(self, fit: "FleetFit") -> None:
        super().__init__([Problem("UNSATISFIABLE", ("spec", "pools"), fit.message)])
        self.fit = fit


class CodeRefused(UserMistake): ...


class Conflict(UserMistake):
    """`job` is the id of the one that holds the key."""

    def __init__(self, problems: Sequence[Problem], job: str | None = None) -> None:
        super().__init__(problems)
        self.job = job


class WrongState(UserMistake): ...


class SettingsWrong(UserMistake): ...


class NotFound(StarForgeError):
    code = "NOT_FOUND"


class Unauthenticated(StarForgeError):
    code = "UNAUTHENTICATED"


class Forbidden(StarForgeError):
    code = "FORBIDDEN"


class Throttled(StarForgeError):
    code = "THROTTLED"
    retryable = True


class BeyondBudget(StarForgeError):
    code = "DOCUMENT_TOO_EXPENSIVE"


class FeedError(StarForgeError): ...


class CursorExpired(FeedError):
    code = "CURSOR_EXPIRED"


class CursorInvalid(FeedError):
    code = "CURSOR_INVALID"


class SlowConsumer(FeedError):
    code = "SLOW_CONSUMER"
    retryable = True


class SnapshotTooLarge(FeedError):
    code = "SNAPSHOT_TOO_LARGE"


class Outside(StarForgeError):
    code = "UNAVAILABLE"
    retryable = True


class FleetUnavailable(Outside):
    """`reason` is what a job that waits for it is held by, where that is more than that nobody answers."""

    def __init__(self, message: str, *, retry_after_s: float | None = None, reason: "Reason | None" = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.reason = reason


class ObjectStoreUnavailable(Outside): ...


class RedisUnavailable(Outside): ...


class IssuerUnavailable(Outside): ...


class StoreUnavailable(Outside): ...


class TookTooLong(Outside):
    code = "TIMEOUT"


class FleetRefused(StarForgeError):
    """The fleet will not do it however often it is asked; the job ends with `reason`."""

    code = "BAD_USER_INPUT"

    def __init__(self, reason: "Reason") -> None:
        super().__init__(reason.message)
        self.reason = reason


class Defect(StarForgeError): ...


class IllegalMove(Defect): ...


class Superseded(Defect): ...


class StaleRevision(Defect):
    retryable = True
