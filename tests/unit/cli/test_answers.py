"""What becomes of a gateway's errors: the right error of our tree, and so the right exit code."""

import pytest

from starforge.cli.answers import data_of
from starforge.cli.exits import ExitCode, exit_code
from starforge.domain.errors import Defect, StarForgeError

WHERE = "http://gateway/graphql"


def raised(answer: object) -> StarForgeError:
    with pytest.raises(StarForgeError) as caught:
        data_of(answer, where=WHERE)
    return caught.value


def error(code: str, **extensions: object) -> dict[str, object]:
    return {"errors": [{"message": "It is so.", "extensions": {"code": code, **extensions}}]}


def test_data_is_handed_on_also_with_an_error_beside_it() -> None:
    assert data_of({"data": {"job": None}, "errors": [{"message": "x"}]}, where=WHERE) == {"job": None}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("BAD_USER_INPUT", ExitCode.REFUSED),
        ("UNAUTHENTICATED", ExitCode.UNREACHABLE),
        ("FORBIDDEN", ExitCode.UNREACHABLE),
        ("UNAVAILABLE", ExitCode.UNREACHABLE),
        ("INTERNAL_SERVER_ERROR", ExitCode.UNREACHABLE),
        ("GRAPHQL_VALIDATION_FAILED", ExitCode.UNREACHABLE),
        ("NOT_FOUND", ExitCode.NOT_FOUND),
        ("A_CODE_OF_TOMORROW", ExitCode.UNREACHABLE),
    ],
)
def test_exit_codes(code: str, expected: ExitCode) -> None:
    found = raised(error(code))
    assert exit_code(found) is expected
    assert "It is so." in found.message


def test_a_refused_token_says_what_to_set() -> None:
    assert "FORGE_TOKEN" in raised(error("UNAUTHENTICATED")).message


def test_what_is_worth_trying_again_is_so_also_with_an_unknown_code() -> None:
    found = raised(error("SLOW_CONSUMER", retryAfterSeconds=2.5, cursor="c7"))
    assert (found.retryable, found.retry_after_s, found.cursor) == (True, 2.5, "c7")
    assert raised(error("A_CODE_OF_TOMORROW", retryable=True)).retryable


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"data": None}, {"errors": []}])
def test_what_is_no_graphql_answer(answer: object) -> None:
    found = raised(answer)
    assert isinstance(found, Defect)
    assert "is not StarForge" in found.message
