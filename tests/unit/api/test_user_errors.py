"""What the domain refuses, as clients are told."""

import ast
from pathlib import Path

import pytest

import starforge.domain
from starforge.api.enums import UserErrorCode
from starforge.api.payloads import CodeError, ConflictError, InputError, user_errors
from starforge.domain.errors import Conflict, Problem, SpecRefused, UserMistake, WrongState


def told(mistake: UserMistake) -> list[object]:
    return [(type(error), error.code, error.field) for error in user_errors(mistake, "input")]


@pytest.mark.parametrize(
    ("mistake", "kind", "field"),
    [
        (SpecRefused([Problem("INVALID", ("spec", "name"), "Bad.")]), InputError, ["input", "spec", "name"]),
        (Conflict([Problem("CONFLICT", ("idempotencyKey",), "Used.")]), ConflictError, ["input", "idempotencyKey"]),
        (WrongState([Problem("WRONG_STATE", ("attempt",), "Old.")]), ConflictError, ["input", "attempt"]),
        (WrongState([Problem("TOO_LARGE", ("note",), "Long.")]), InputError, ["input", "note"]),
    ],
)
def test_kinds(mistake: UserMistake, kind: type, field: list[str]) -> None:
    assert told(mistake) == [(kind, UserErrorCode(mistake.problems[0].code), field)]


def test_a_file_that_is_refused() -> None:
    problem = Problem("SECRET_FOUND", ("code", "files", "0"), "A key.", file="id_rsa", rule="private-key")
    error = user_errors(SpecRefused([problem]), "input")[0]
    assert isinstance(error, CodeError)
    assert (error.path, error.rule) == ("id_rsa", "private-key")


def _codes(path: Path) -> set[str]:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Problem" and call.args]
    return {
        text.value
        for call in named
        for text in ast.walk(call.args[0])
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.isupper()
    }


def test_the_schema_knows_every_code_of_the_domain() -> None:
    codes = set().union(*map(_codes, Path(starforge.domain.__path__[0]).rglob("*.py")))
    assert len(codes) > 8
    assert codes <= set(UserErrorCode)
