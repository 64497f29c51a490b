"""What the operations of a document cost, each time it is asked."""

from collections.abc import Iterable, Mapping
from typing import Any

from graphql import OperationDefinitionNode

from starforge.api.transport.cost import Evaluation, Selected
from starforge.api.transport.slicing import count, literal

KEPT = 64
"""Costs that are kept for one document: dashboards ask again with the same sizes."""

_Sizes = tuple[tuple[str, int | None], ...]


class Costs:
    def __init__(self, nodes: Iterable[OperationDefinitionNode], operations: Mapping[str | None, Selected]) -> None:
        self._operations = operations
        self._defaults = {node.name.value if node.name else None: _defaults(node) for node in nodes}
        self._matter = sorted(_variables(operations.values()))
        self._known: dict[tuple[str | None, _Sizes], int] = {}

    def of(self, name: str | None, variables: Mapping[str, Any]) -> int:
        """Points of the operation called `name`, or of the only one. 0 if there is none."""
        if name is None and len(self._operations) == 1:
            name = next(iter(self._operations))
        selected = self._operations.get(name)
        if selected is None:
            return 0
        key = name, tuple(self._sizes(name, variables))
        if key not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = 1 + Evaluation(dict(key[1])).cost(selected)
        return self._known[key]

    def _sizes(self, name: str | None, variables: Mapping[str, Any]) -> Iterable[tuple[str, int | None]]:
        defaults = self._defaults[name]
        for variable in self._matter:
            if variable in variables:
                yield variable, count(variables[variable])
            elif variable in defaults:
                yield variable, defaults[variable]


def _defaults(node: OperationDefinitionNode) -> Mapping[str, int | None]:
    given = node.variable_definitions or ()
    return {one.variable.name.value: literal(one.default_value) for one in given if one.default_value is not None}


def _variables(operations: Iterable[Selected]) -> set[str]:
    """Names of the variables that say how many items there are."""
    seen: set[Selected] = set()
    waiting = list(operations)
    names: set[str] = set()
    while waiting:
        selected = waiting.pop()
        if selected not in seen:
            seen.add(selected)
            waiting += selected.spread
            waiting += [field.below for field in selected.fields]
            names.update(value.variable for field in selected.fields for value in field.slices if value.variable)
    return names
