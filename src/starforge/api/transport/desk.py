"""What every connection of a gateway works with."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Generic

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    VariableNode,
)
from graphql.language import SelectionSetNode, print_ast

from starforge.api.transport.callers import Callers, CallerT, Incoming
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.connections import Connections
from starforge.api.transport.counting import Spread
from starforge.api.transport.encoding import encode_json, encode_sorted
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Executor, Prepared
from starforge.api.transport.following import Following, Place
from starforge.api.transport.front import Front
from starforge.api.transport.groups import Groups
from starforge.api.transport.limits import TransportLimits

RESUME_ARGUMENT = "after"


class Desk(Generic[CallerT]):
    """`shared` names the fields of the schema's subscription whose resolvers know of sources."""

    def __init__(
        self,
        executor: Executor[CallerT],
        callers: Callers[CallerT],
        limits: TransportLimits,
        *,
        shared: frozenset[str] = frozenset(),
    ) -> None:
        self.executor = executor
        self.callers = callers
        self.limits = limits
        self.connections = Connections(limits, callers)
        self.groups = Groups()
        self.front = Front(executor, callers)
        self.draining = asyncio.Event()
        self.grace_over: float | None = None
        """When what still runs is given up, by the clock of the event loop; None for never."""
        self.running = 0
        self.took = Spread()
        self.shed = 0
        self._shared = shared

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """One query or mutation. Raises RequestRefused if too many run."""
        if self.running >= self.limits.in_flight_requests:
            self.shed += 1
            sentence = "This gateway is busy: try again in a second."
            raise RequestRefused(ErrorCode.UNAVAILABLE, sentence, headers={"retry-after": "1"})
        self.running += 1
        began = self.now()
        try:
            yield
        finally:
            self.running -= 1
            self.took.add(self.now() - began)

    def following(self, asked: Prepared, incoming: Incoming[CallerT], place: Place) -> Following:
        """One subscription, in the group of those who asked the same."""

        root = _root_field(asked)
        if root is None or root.name.value not in self._shared:
            return Following(place, partial(self.executor.stream, asked, incoming), None, None)
        variables = dict(asked.request.variables or {})
        after = _take_after(root, variables, asked)
        # What all have in common runs with what all have in common: not with where its first member begins.
        common = replace(asked, request=replace(asked.request, variables=variables))
        key = (asked.document.text, asked.request.operation_name, encode_sorted(variables),
               self.callers.sharing(incoming.caller, asked.request))  # fmt: skip
        self.groups.resumed += after not in (None, "null")
        group = self.groups.group(key, partial(self.executor.stream, common, incoming))
        return Following(place, partial(self.executor.stream, asked, incoming), after, group)


def _take_after(root: FieldNode, variables: dict[str, Any], asked: Prepared) -> str | None:
    """Where the subscription begins, as text to compare; if nothing else uses it, `variables` say nothing of it."""
    argument = next((one for one in root.arguments or () if one.name.value == RESUME_ARGUMENT), None)
    if argument is None:
        return None
    if not isinstance(argument.value, VariableNode):
        return print_ast(argument.value)
    name = argument.value.name.value
    uses = asked.document.text.count(f"${name}")
    given = encode_json(variables[name]) if name in variables else None
    if uses == 2:  # its definition and this
        variables[name] = ""
    return given


def _root_field(asked: Prepared) -> FieldNode | None:
    """The only field of a subscription, also inside fragments."""
    document = asked.document.text.parsed
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    name = asked.request.operation_name
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode) and (name is None or (node.name and node.name.value == name)):
            return _first_field(node.selection_set, fragments)
    return None


def _first_field(selections: SelectionSetNode, fragments: dict[str, FragmentDefinitionNode]) -> FieldNode | None:
    for selection in selections.selections:
        if isinstance(selection, FieldNode):
            return selection
        within = fragments[selection.name.value] if isinstance(selection, FragmentSpreadNode) else selection
        if isinstance(within, FragmentDefinitionNode | InlineFragmentNode):
            found = _first_field(within.selection_set, fragments)
            if found is not None:
                return found
    return None
