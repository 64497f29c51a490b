"""One sentence per setting that is wrong: its name, what is wrong, and an example. Secrets are not repeated."""

import types
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from starforge.domain.errors import Problem

PREFIX = "FORGE_"
Known = Mapping[str, FieldInfo]
_WORDS = {
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be {expected}",
    "string_pattern_mismatch": "has the wrong form",
}
_SHOWN_MAX = 80


def wrong(name: str, error: ErrorDetails, known: Known, given: Mapping[str, str]) -> Problem:
    """A setting whose text can't be its value; `given` holds that text."""
    context = error.get("ctx", {})
    words = _WORDS.get(error["type"], "").format(**context) or str(context.get("error") or error["msg"])
    shown = "" if _is_secret(known[name]) else f"={given[name][:_SHOWN_MAX]}"
    code = "OUT_OF_RANGE" if error["type"] in {"greater_than_equal", "less_than_equal"} else "INVALID"
    return Problem(code, (name,), f"{name}{shown} {words}; for example {_example(name, known)}.")


def missing(name: str, why: str, known: Known) -> Problem:
    return Problem("REQUIRED", (name,), f"{name} is missing: {why}; for example {_example(name, known)}.")


def unknown(name: str, known: Known) -> Problem:
    names = [one.removeprefix(PREFIX) for one in known]
    close = get_close_matches(name.removeprefix(PREFIX), names, n=1, cutoff=0.7)
    hint = f"did you mean {PREFIX}{close[0]}?" if close else "docs/operations.md lists all settings."
    return Problem("INVALID", (name,), f"{name} is not a setting: {hint}")


def not_together(one: str, other: str, given: Mapping[str, str]) -> Iterator[Problem]:
    if one in given and other in given:
        yield Problem("EXCLUSIVE", (one,), f"{one} and {other} exclude each other; unset one, for example {one}.")


def too_few(names: Sequence[str], given: Mapping[str, str], known: Known) -> Iterator[Problem]:
    """Settings that are of no use without the others of `names`."""
    present = [name for name in names if name in given]
    if present:
        yield from (missing(name, f"{present[0]} needs it", known) for name in names if name not in given)


def _example(name: str, known: Known) -> str:
    example = (known[name].examples or ["…"])[0]
    return f"{name}={example.value if isinstance(example, Enum) else example}"


def _is_secret(field: FieldInfo) -> bool:
    return _holds_secret(field.annotation)


def _holds_secret(annotation: object) -> bool:
    inner = get_args(annotation) if not isinstance(annotation, type) else ()
    return annotation is SecretStr or any(_holds_secret(one) for one in inner if not isinstance(one, types.NoneType))
