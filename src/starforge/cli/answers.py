"""What a gateway answers: its data, or an error of our tree made from its errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from starforge.domain.errors import (
    CursorExpired,
    CursorInvalid,
    Defect,
    Forbidden,
    NotFound,
    Outside,
    Problem,
    SlowConsumer,
    StarForgeError,
    Unauthenticated,
    UserMistake,
)

Json = dict[str, Any]

_KINDS: Mapping[str, type[StarForgeError]] = {
    kind.code: kind
    for kind in (CursorExpired, CursorInvalid, Forbidden, NotFound, Outside, SlowConsumer, Unauthenticated)
}
_STRANGE = frozenset({"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "OPERATION_RESOLUTION_FAILURE"})


def data_of(answer: object, *, where: str) -> Json:
    """The data of a GraphQL response; the error that it holds instead, or Defect if it is no such response.

    An error beside data is about a field that is null then, and whoever reads that field says so.
    """
    if not isinstance(answer, dict) or not (answer.get("data") or answer.get("errors")):
        raise Defect(f"What answers at {where} is not StarForge; check FORGE_URL.")
    if isinstance(answer.get("data"), dict):
        return dict(answer["data"])
    raise error_of(answer["errors"], where=where)


def error_of(errors: Sequence[Json], *, where: str) -> StarForgeError:
    """The first of a response's errors, as one of ours."""
    first = errors[0]
    told = first.get("extensions") or {}
    code, message = str(told.get("code", "")), str(first.get("message", "Something went wrong."))
    if code in {"BAD_USER_INPUT", "SNAPSHOT_TOO_LARGE"}:
        return UserMistake([Problem("INVALID", (), message)])
    if code == Unauthenticated.code:
        message = f"The gateway at {where} does not take this token; set FORGE_TOKEN to a valid one. ({message})"
    if code in _STRANGE:
        message = f"The gateway at {where} is of another version than this command: {message}"
    kind = _KINDS.get(code) or (Outside if told.get("retryable") else Defect)
    return kind(message, retry_after_s=told.get("retryAfterSeconds"), cursor=told.get("cursor"))
