"""`errors[].extensions.code`, and what each means for HTTP and for whether to try again."""

from enum import StrEnum


class ErrorCode(StrEnum):
    """The values of the schema's `ErrorCode`."""

    GRAPHQL_PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    OPERATION_RESOLUTION_FAILURE = "OPERATION_RESOLUTION_FAILURE"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    BAD_REQUEST = "BAD_REQUEST"
    PERSISTED_DOCUMENT_NOT_FOUND = "PERSISTED_DOCUMENT_NOT_FOUND"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    DOCUMENT_TOO_EXPENSIVE = "DOCUMENT_TOO_EXPENSIVE"
    THROTTLED = "THROTTLED"
    TOO_MANY_SUBSCRIPTIONS = "TOO_MANY_SUBSCRIPTIONS"
    SNAPSHOT_TOO_LARGE = "SNAPSHOT_TOO_LARGE"
    CURSOR_EXPIRED = "CURSOR_EXPIRED"
    CURSOR_INVALID = "CURSOR_INVALID"
    SLOW_CONSUMER = "SLOW_CONSUMER"
    UNAVAILABLE = "UNAVAILABLE"
    TIMEOUT = "TIMEOUT"
    INTERNAL_SERVER_ERROR = "INTERNAL_SERVER_ERROR"


REQUEST_ERRORS = frozenset(
    {
        ErrorCode.GRAPHQL_PARSE_FAILED,
        ErrorCode.GRAPHQL_VALIDATION_FAILED,
        ErrorCode.OPERATION_RESOLUTION_FAILURE,
        ErrorCode.BAD_USER_INPUT,
        ErrorCode.DOCUMENT_TOO_EXPENSIVE,
    }
)
"""Answers to a well-formed request: a client that only takes `application/json` gets them with status 200, as it
can't trust any other, and as the audits of `graphql-http` check."""

_STATUSES = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.PERSISTED_DOCUMENT_NOT_FOUND: 404,
    ErrorCode.THROTTLED: 429,
    ErrorCode.TOO_MANY_SUBSCRIPTIONS: 429,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.TIMEOUT: 504,
    ErrorCode.INTERNAL_SERVER_ERROR: 500,
}

_RETRYABLE = frozenset(
    {
        ErrorCode.THROTTLED,
        ErrorCode.TOO_MANY_SUBSCRIPTIONS,
        ErrorCode.SLOW_CONSUMER,
        ErrorCode.UNAVAILABLE,
        ErrorCode.TIMEOUT,
    }
)


def http_status(code: ErrorCode) -> int:
    """The status of a response that has no `data` because of this error."""
    return _STATUSES.get(code, 400)


def is_retryable(code: ErrorCode) -> bool:
    """Whether the same request may succeed later, unless the error itself says otherwise."""
    return code in _RETRYABLE
