"""What a client is told about an error: a code, an id, and never the text of an exception nobody meant for it."""

import logging
import math
import secrets
from typing import Any

from graphql import FieldNode, GraphQLError, GraphQLFormattedError, VariableDefinitionNode

from starforge.api.transport.codes import ErrorCode, http_status, is_retryable
from starforge.domain.errors import SlowConsumer, StarForgeError

log = logging.getLogger(__name__)


class RequestRefused(Exception):
    """The request is answered without running it (`data` is absent).

    `status` is what HTTP answers; `headers` go with it.
    """

    def __init__(
        self,
        code: ErrorCode,
        *errors: GraphQLError | str,
        status: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        located = [error if isinstance(error, GraphQLError) else GraphQLError(error) for error in errors]
        super().__init__(" ".join(error.message for error in located))
        self.code = code
        self.errors = [_tell(error, error.message, code) for error in located]
        self.status = status or http_status(code)
        self.headers = headers or {}

    @classmethod
    def because_of(cls, error: Exception) -> "RequestRefused":
        """Made from whatever a layer raised, by the same rules as an error of a field."""
        if isinstance(error, cls):
            return error
        located = error if isinstance(error, GraphQLError) else GraphQLError(str(error), original_error=error)
        return cls.with_errors([describe(located)])

    @classmethod
    def slow(cls, sentence: str, cursor: str | None) -> "RequestRefused":
        """SLOW_CONSUMER, with the cursor to resume from if it is known."""
        return cls.because_of(SlowConsumer(sentence, cursor=cursor))

    @classmethod
    def with_errors(cls, told: list[GraphQLFormattedError]) -> "RequestRefused":
        """Of errors that were described already; the first decides the status."""
        refused = cls(ErrorCode(told[0]["extensions"]["code"]))
        refused.errors = told
        if retry_after := told[0]["extensions"].get("retryAfterSeconds"):
            refused.headers["retry-after"] = str(math.ceil(retry_after))
        return refused

    def again(self) -> "RequestRefused":
        """The same refusal without where it was raised, whose frames hold on to all that they worked with."""
        refused = RequestRefused(self.code, status=self.status, headers=self.headers)
        refused.args, refused.errors = self.args, self.errors
        return refused

    def body(self) -> dict[str, Any]:
        return {"errors": self.errors}


def describe(error: GraphQLError) -> GraphQLFormattedError:
    """The error as the client gets it; what is not meant for it is masked, and logged under the id it is given."""
    cause = cause_of(error)
    if isinstance(cause, StarForgeError) and _named_code(cause.code) not in (None, ErrorCode.INTERNAL_SERVER_ERROR):
        return _tell_ours(error, cause)
    code = _code_of_graphql(error, cause)
    if code is None:
        return _mask(error, cause)
    return _tell(error, error.message, code)


def cause_of(error: GraphQLError) -> Exception:
    """What was raised where the error is."""
    cause: Exception = error
    while isinstance(cause, GraphQLError) and cause.original_error is not None:
        cause = cause.original_error
    return cause


def _code_of_graphql(error: GraphQLError, cause: Exception) -> ErrorCode | None:
    """The code of an error that graphql-core or a resolver made for the client; none if it has to be masked."""
    nodes = error.nodes or []
    if nodes and isinstance(nodes[0], VariableDefinitionNode):
        return ErrorCode.BAD_USER_INPUT
    if not isinstance(cause, GraphQLError):
        return None
    if named := _named_code((cause.extensions or {}).get("code")):
        return named
    # Located at a value of the document: an argument. Located at a field: our own resolver gave a value that its
    # type can't carry, and the message quotes that value.
    at_field = bool(error.path) and all(isinstance(node, FieldNode) for node in cause.nodes or [])
    return None if at_field else ErrorCode.BAD_USER_INPUT


def _named_code(name: object) -> ErrorCode | None:
    return ErrorCode(name) if isinstance(name, str) and name in ErrorCode.__members__ else None


def _tell_ours(error: GraphQLError, cause: StarForgeError) -> GraphQLFormattedError:
    extras = {"retryAfterSeconds": cause.retry_after_s, "cursor": cause.cursor}
    known = {name: value for name, value in extras.items() if value is not None}
    return _tell(error, cause.message, ErrorCode(cause.code), retryable=cause.retryable, **known)


def _mask(error: GraphQLError, cause: Exception) -> GraphQLFormattedError:
    error_id = _new_id()
    place = ".".join(map(str, error.path or ())) or "the operation"
    log.error("GraphQL error %s at %s", error_id, place, exc_info=cause)
    message = f"Something went wrong inside StarForge. Quote the id {error_id} when you report it."
    retryable = bool(getattr(cause, "retryable", False))
    return _tell(error, message, ErrorCode.INTERNAL_SERVER_ERROR, retryable=retryable, id=error_id)


def _tell(error: GraphQLError, message: str, code: ErrorCode, **extras: Any) -> GraphQLFormattedError:
    told: GraphQLFormattedError = {"message": message}
    if error.locations:
        told["locations"] = [location.formatted for location in error.locations]
    if error.path:
        told["path"] = error.path
    told["extensions"] = {"code": code.value, "id": _new_id(), "retryable": is_retryable(code), **extras}
    return told


def _new_id() -> str:
    return secrets.token_hex(8)
