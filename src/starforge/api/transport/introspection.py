"""Introspection, run beside the event loop.

graphql-core resolves it without a pause, for a third of a second where a tool asks for the whole schema: so it runs in a
thread that rests, and as a schema never changes, its answers are kept.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphql import DocumentNode, GraphQLSchema, execute
from strawberry.types.execution import ExecutionResult

from starforge.api.transport.cost import Selected
from starforge.api.transport.prices import INTROSPECTION
from starforge.api.transport.validation import rest

FIELDS_BETWEEN_RESTS = 200
"""A field takes about 10 µs."""
KEPT = 16
KEY_MAX = 4096
"""Characters of variables with which an answer is kept."""


class MixedIntrospection(Exception):
    """An operation asks for the schema and for something else."""


def introspects(operation: Selected) -> bool:
    """Whether an operation asks for nothing but the schema. Raises MixedIntrospection if it asks for more besides."""
    names = set(_root_fields(operation))
    if names & INTROSPECTION and names - INTROSPECTION:
        raise MixedIntrospection
    return bool(names & INTROSPECTION)


def _root_fields(operation: Selected) -> Iterator[str]:
    seen: set[Selected] = set()
    waiting = [operation]
    while waiting:
        selected = waiting.pop()
        if selected not in seen:
            seen.add(selected)
            waiting += selected.spread
            yield from (field.name for field in selected.fields)


class Introspection:
    """Answers about one schema."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="introspection")
        self._kept: OrderedDict[tuple[str, str | None, str], ExecutionResult] = OrderedDict()

    async def answer(
        self,
        schema: GraphQLSchema,
        text: str,
        document: DocumentNode,
        *,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> ExecutionResult:
        """Of an operation that `introspects`."""
        key = text, operation_name, json.dumps(variables or {}, sort_keys=True, default=repr)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._thread, _execute, schema, document, variables, operation_name)
        if len(key[2]) <= KEY_MAX and not result.errors:
            self._kept[key] = result
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return result


def _execute(
    schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any] | None, operation_name: str | None
) -> ExecutionResult:
    resolved = 0

    def resting(resolve: Callable[..., Any], source: Any, info: Any, **arguments: Any) -> Any:
        nonlocal resolved
        resolved += 1
        if resolved % FIELDS_BETWEEN_RESTS == 0:
            rest()
        return resolve(source, info, **arguments)

    result: Any = execute(
        schema,
        document,
        variable_values=dict(variables or {}),
        operation_name=operation_name,
        middleware=[resting],
    )
    return ExecutionResult(data=result.data, errors=result.errors)
