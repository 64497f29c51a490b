"""graphql-core's executor, which takes the compiled way where there is one."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import Any

from graphql import (
    FragmentDefinitionNode,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    Node,
    OperationDefinitionNode,
    VariableNode,
)
from graphql.execution.collect_fields import DeferUsage, FieldDetailsList, GroupedFieldSet
from graphql.pyutils import Path
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from starforge.api.transport.compiled.plan import Plan
from starforge.api.transport.pacing import FEW, Rests, current, pace_of

PLANS_MAX = 16
"""Of one operation: a document that is steered in more ways than these is not compiled for the others."""
_KEPT = "_compiled_plans"


class CompiledExecutor(StrawberryGraphQLCoreExecutionContext):
    """For documents that are kept and executed many times, by operations whose fields are not deferred."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._plan = _plan(self)
        if self._plan is not None:
            self._relevant_sub_fields = self._plan.sub_fields
        self._rests = _rests()

    def execute_collected_root_fields(
        self,
        root_type: GraphQLObjectType,
        root_value: Any,
        grouped_field_set: GroupedFieldSet,
        serially: bool,
        new_defer_usages: Sequence[DeferUsage],
    ) -> Any:
        if self._plan is not None:
            if self._plan.root is None:
                self._plan.root = grouped_field_set
            grouped_field_set = self._plan.root
        return super().execute_collected_root_fields(
            root_type, root_value, grouped_field_set, serially, new_defer_usages
        )

    def execute_fields(
        self,
        parent_type: GraphQLObjectType,
        source_value: Any,
        path: Path | None,
        grouped_field_set: GroupedFieldSet,
        position_context: Any,
    ) -> Any:
        if self._plan is None:
            return super().execute_fields(parent_type, source_value, path, grouped_field_set, position_context)
        reads, rest = self._plan.split(self, parent_type, grouped_field_set)
        try:
            done = {name: read(source_value) for name, read in reads.items()}
        except Exception:  # noqa: BLE001  graphql-core finds it again and tells of it
            done, rest = {}, grouped_field_set
        if not rest:
            return done
        others: Any = super().execute_fields(parent_type, source_value, path, rest, position_context)
        if not done:
            return others
        if self.is_awaitable(others):
            return _merge_late(grouped_field_set, done, others)
        return _merge(grouped_field_set, done, others)

    def complete_value(
        self,
        return_type: GraphQLOutputType,
        field_details_list: FieldDetailsList,
        info: GraphQLResolveInfo[Any],
        path: Path,
        result: Any,
        position_context: Any,
    ) -> Any:
        if self._plan is not None and result is not None:
            complete = self._plan.completer(self, return_type, field_details_list)
            if complete is not None:
                try:
                    return complete(result)
                except Exception:  # noqa: BLE001, S110  graphql-core finds it again and tells of it
                    pass
        return super().complete_value(return_type, field_details_list, info, path, result, position_context)

    async def complete_awaitable_value(
        self,
        return_type: GraphQLOutputType,
        field_details_list: FieldDetailsList,
        info: GraphQLResolveInfo[Any],
        path: Path,
        result: Any,
        position_context: Any,
    ) -> Any:
        paced = result if self._rests is None else self._rests.before(result)
        return await super().complete_awaitable_value(
            return_type, field_details_list, info, path, paced, position_context
        )

    def complete_iterable_value(
        self,
        item_type: GraphQLOutputType,
        field_details_list: FieldDetailsList,
        info: GraphQLResolveInfo[Any],
        path: Path,
        items: Iterable[Any],
        position_context: Any,
    ) -> Any:
        if self._rests is None or not isinstance(items, list | tuple) or len(items) <= FEW:
            return super().complete_iterable_value(item_type, field_details_list, info, path, items, position_context)
        return self.complete_async_iterator_value(
            item_type, field_details_list, info, path, self._rests.between(items), position_context
        )


def _rests() -> Rests | None:
    """Of the operation that begins; None where no loop runs that others wait for."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    rests = Rests(pace_of(loop))
    current.set(rests)
    return rests


def _merge(order: GroupedFieldSet, done: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    both = done | others
    return {name: both[name] for name in order if name in both}


async def _merge_late(
    order: GroupedFieldSet, done: dict[str, Any], others: Awaitable[dict[str, Any]]
) -> dict[str, Any]:
    return _merge(order, done, await others)


def _plan(executor: CompiledExecutor) -> Plan | None:
    """The plan of the operation, of those kept with it; None where compiling it could tell apart what must not be."""
    operation, middleware = executor.operation, executor.middleware_manager
    plans: tuple[Any, tuple[str, ...] | None, dict[tuple[Any, ...], Plan]] | None = operation.__dict__.get(_KEPT)
    if plans is None:
        plans = operation.__dict__[_KEPT] = (executor.schema, _steering(executor), {})
    schema, steering, kept = plans
    if schema is not executor.schema or steering is None or (middleware and middleware.middlewares):
        return None
    values = executor.variable_values.coerced
    key = tuple(values.get(name) for name in steering)
    plan = kept.get(key)
    if plan is None and len(kept) < PLANS_MAX:
        plan = kept[key] = Plan()
    return plan


def _steering(executor: CompiledExecutor) -> tuple[str, ...] | None:
    """Names of the variables that say which fields there are; None if more than variables says so."""
    if executor.schema.get_directive("defer") or not executor.error_propagation:
        return None
    if any(fragment.variable_signatures for fragment in executor.fragments.values()):
        return None
    nodes: list[OperationDefinitionNode | FragmentDefinitionNode] = [
        executor.operation,
        *executor.fragment_definitions.values(),
    ]
    return tuple(sorted({name for node in nodes for name in _steered_by(node)}))


def _steered_by(definition: OperationDefinitionNode | FragmentDefinitionNode) -> Iterator[str]:
    ahead: list[Node] = list(definition.selection_set.selections)
    while ahead:
        node: Any = ahead.pop()
        for directive in node.directives or ():
            if directive.name.value in ("skip", "include"):
                yield from (one.value.name.value for one in directive.arguments if isinstance(one.value, VariableNode))
        inner = getattr(node, "selection_set", None)
        if inner is not None:
            ahead.extend(inner.selections)
