import logging
from typing import Any

import pytest
from graphql import FieldNode, GraphQLError, OperationDefinitionNode, located_error, parse

from starforge.api.transport.codes import ErrorCode, http_status
from starforge.api.transport.errors import RequestRefused, describe
from starforge.domain.errors import CursorExpired, IllegalMove, NotFound, SlowConsumer, StoreUnavailable

[OPERATION] = parse("query($a: Int) {f(a: $a)}").definitions
assert isinstance(OPERATION, OperationDefinitionNode)
[VARIABLE] = OPERATION.variable_definitions or ()
[FIELD] = OPERATION.selection_set.selections
assert isinstance(FIELD, FieldNode)
[ARGUMENT] = FIELD.arguments or ()


def at_field(error: Exception) -> GraphQLError:
    return located_error(error, [FIELD], ["jobs", 0, "f"])


class WithUnknownCode(NotFound):
    code = "SOMETHING_ELSE"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (at_field(ValueError("hunter2")), "INTERNAL_SERVER_ERROR"),
        (at_field(IllegalMove("hunter2")), "INTERNAL_SERVER_ERROR"),
        (at_field(WithUnknownCode("hunter2")), "INTERNAL_SERVER_ERROR"),
        (at_field(GraphQLError("Int cannot represent hunter2")), "INTERNAL_SERVER_ERROR"),
        (at_field(GraphQLError("Abstract type hunter2", [FIELD])), "INTERNAL_SERVER_ERROR"),
        (at_field(GraphQLError("hunter2", extensions={"code": "NOT_OURS"})), "INTERNAL_SERVER_ERROR"),
        (GraphQLError("hunter2", original_error=RuntimeError("hunter2")), "INTERNAL_SERVER_ERROR"),
        (at_field(NotFound("There is no job.")), "NOT_FOUND"),
        (at_field(CursorExpired("Too old.")), "CURSOR_EXPIRED"),
        (at_field(GraphQLError("No.", extensions={"code": "FORBIDDEN"})), "FORBIDDEN"),
        (at_field(GraphQLError("Argument 'a' has an invalid value.", [ARGUMENT])), "BAD_USER_INPUT"),
        (GraphQLError("Variable '$a' is missing.", VARIABLE), "BAD_USER_INPUT"),
        (GraphQLError("Variable '$a' is bad.", VARIABLE, original_error=ValueError("bad")), "BAD_USER_INPUT"),
        (GraphQLError("Variable values are nested too deeply."), "BAD_USER_INPUT"),
    ],
)
def test_code_and_mask(error: GraphQLError, code: str, caplog: pytest.LogCaptureFixture) -> None:
    told = describe(error)
    is_masked = code == "INTERNAL_SERVER_ERROR"
    assert told["extensions"]["code"] == code
    assert ("hunter2" in repr(told)) is False
    assert (told["message"] == error.message) is not is_masked
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert [told["extensions"]["id"] in record.getMessage() for record in logged] == [True] * is_masked


def test_what_the_error_knows_is_passed_on() -> None:
    told = describe(at_field(SlowConsumer("Too slow.", retry_after_s=1.5, cursor="c1")))
    extensions: dict[str, Any] = dict(told["extensions"])
    assert extensions.pop("id")
    assert extensions == {"code": "SLOW_CONSUMER", "retryable": True, "retryAfterSeconds": 1.5, "cursor": "c1"}
    assert told["path"] == ["jobs", 0, "f"]


def test_ids_differ() -> None:
    error = at_field(NotFound("There is no job."))
    assert describe(error)["extensions"]["id"] != describe(error)["extensions"]["id"]


def test_a_refusal_made_from_an_exception() -> None:
    refused = RequestRefused.because_of(StoreUnavailable("Down.", retry_after_s=0.2))
    assert (refused.status, refused.code, refused.headers) == (503, ErrorCode.UNAVAILABLE, {"retry-after": "1"})
    assert RequestRefused.because_of(refused) is refused
    masked = RequestRefused.because_of(KeyError("hunter2"))
    assert (masked.status, "hunter2" in repr(masked.body())) == (500, False)


@pytest.mark.parametrize("code", ErrorCode)
def test_every_code_has_an_error_status(code: ErrorCode) -> None:
    assert 400 <= http_status(code) < 600
