"""How many items a field is asked for, by the arguments that say so."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import ArgumentNode, IntValueNode, ValueNode, VariableNode

from starforge.api.transport.prices import Sizing

LARGEST = 2**31 - 1
"""The largest Int of GraphQL."""
_DIGITS = len(str(LARGEST))


@dataclass(frozen=True)
class Slice:
    """The value of one slicing argument: known from the document, or that of a variable."""

    known: int | None = None
    variable: str | None = None
    default: int | None = None
    """Where the variable has no value."""

    def value(self, variables: Mapping[str, int | None]) -> int | None:
        if self.variable is None:
            return self.known
        return variables.get(self.variable, self.default)


def slices_of(arguments: Iterable[ArgumentNode] | None, sizing: Sizing) -> tuple[Slice, ...]:
    """Of a field with these arguments."""
    given = {node.name.value: node.value for node in arguments or ()} if sizing.arguments else {}
    return tuple(_slice(given.get(name), count((sizing.defaults or {}).get(name))) for name in sizing.arguments)


def _slice(node: ValueNode | None, default: int | None) -> Slice:
    if isinstance(node, VariableNode):
        return Slice(variable=node.name.value, default=default)
    return Slice(known=default if node is None else literal(node))


def literal(node: ValueNode | None) -> int | None:
    """The number that a literal is, None if it is none."""
    if not isinstance(node, IntValueNode):
        return None
    # A number of thousands of digits is no int that Python makes.
    return (
        count(int(node.value)) if len(node.value) <= _DIGITS else count(LARGEST * (-1 if node.value[0] == "-" else 1))
    )


def count(value: Any) -> int | None:
    """A number of items between 0 and LARGEST, None if the value is no number: execution says what is wrong with it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return min(max(value, 0), LARGEST)
