"""The combinations of a matrix, and the texts that they are put into."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Parameters = Mapping[str, str]
INDEX = "index"
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MARK = re.compile(r"\{\{|\}\}|(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")


class UnknownParameter(ValueError):
    """A text names a parameter that there is not; the argument is its name."""


def combinations(
    matrix: Mapping[str, Sequence[str]], include: Iterable[Parameters], exclude: Sequence[Parameters]
) -> Iterator[Parameters]:
    """All of the matrix, the first parameter varying slowest, but for those excluded; then those included."""
    if matrix:
        for values in product(*matrix.values()):
            one = dict(zip(matrix, values, strict=True))
            if not any(rule.items() <= one.items() for rule in exclude):
                yield one
    yield from include


def filled(text: str, parameters: Parameters) -> str:
    """`text` with each `{name}` replaced; `{{` and `}}` are braces, and `${…}` is left to shells."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0][0]
        if name not in parameters:
            raise UnknownParameter(name)
        return parameters[name]

    return _MARK.sub(value, text)


def fill(spec: Mapping[str, Any], parameters: Parameters) -> dict[str, Any]:
    """The spec with the parameters in its name, its command, and the values of its env and labels."""
    given = dict(spec) | {"name": filled(spec["name"], parameters)}
    given["command"] = [filled(word, parameters) for word in spec["command"]]
    for name in ("env", "labels"):
        if name in spec:
            given[name] = [_with_value(one, parameters) for one in spec[name]]
    return given


def _with_value(one: Mapping[str, Any], parameters: Parameters) -> dict[str, Any]:
    value = one.get("value")
    return dict(one) | ({"value": filled(value, parameters)} if value is not None else {})
