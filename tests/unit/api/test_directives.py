"""Directives stand in the schema and are in force."""

import asyncio
import inspect
from types import SimpleNamespace
from typing import Any

import pytest
from graphql import GraphQLField, GraphQLSchema, get_named_type, is_composite_type, is_list_type, is_non_null_type

from starforge.api.directives import Cost, ListSize, directive_of, guarded_fields
from starforge.api.schema import make_schema, print_schema
from starforge.domain.errors import Forbidden
from starforge.domain.job import Actor, ActorKind
from starforge.domain.rights import Caller, Role

SCHEMA = make_schema()
CORE: GraphQLSchema = SCHEMA._schema
GUARDED = list(guarded_fields(SCHEMA))
OURS = [type_ for name, type_ in CORE.type_map.items() if not name.startswith("__")]
FIELDS = [(type_, name, field) for type_ in OURS for name, field in getattr(type_, "fields", {}).items()]
OUTPUTS = [(type_, name, field) for type_, name, field in FIELDS if isinstance(field, GraphQLField)]

SMALL = {"Clock", "EnvVar", "FreeBlock", "HttpHeader", "Label", "LogGap", "PoolSpec", "TextRange"}
"""Values of which an object has few: a list of them costs as much as one."""


async def _ask(field: GraphQLField, role: Role) -> None:
    """Resolves the field for a caller with this role; without arguments, so that whoever is let in fails at them."""
    context = SimpleNamespace(caller=Caller(Actor("eve", ActorKind.TOKEN), role))
    info: Any = SimpleNamespace(context=context, field_nodes=[], path=None, variable_values={})
    answer = (field.subscribe or field.resolve)(None, info)  # type: ignore[misc]
    if inspect.isawaitable(answer):
        await answer


@pytest.mark.parametrize(("name", "field", "role"), GUARDED, ids=[name for name, _, _ in GUARDED])
def test_a_viewer_is_refused_where_more_is_needed(name: str, field: GraphQLField, role: Role) -> None:
    with pytest.raises(Forbidden, match=f"needs a token with the role {role}; yours is VIEWER"):
        asyncio.run(_ask(field, Role.VIEWER))
    with pytest.raises(Exception) as let_in:  # noqa: PT011  each field lacks something else
        asyncio.run(_ask(field, role))
    assert not isinstance(let_in.value, Forbidden)


def test_every_mutation_needs_a_submitter() -> None:
    assert CORE.mutation_type is not None
    assert {f"Mutation.{name}" for name in CORE.mutation_type.fields} <= {name for name, _, _ in GUARDED}


def test_a_refusal_is_told_as_forbidden_and_changes_nothing() -> None:
    context = SimpleNamespace(caller=Caller(Actor("eve", ActorKind.TOKEN), Role.VIEWER))
    result: Any = asyncio.run(SCHEMA.execute('mutation {cancelJob(id: "job.1") {status}}', context_value=context))
    assert result.data is None
    assert [type(error.original_error) for error in result.errors] == [Forbidden]


def test_every_list_of_objects_has_a_size() -> None:
    sized = {
        (get_named_type(field.type).name, name)
        for _, _, field in OUTPUTS
        if (stated := directive_of(ListSize, field))
        for name in stated.sized_fields or ()
    }
    lacking = [
        f"{type_.name}.{name}"
        for type_, name, field in OUTPUTS
        if _is_list(field) and is_composite_type(get_named_type(field.type))
        if not directive_of(ListSize, field) and (type_.name, name) not in sized
        if get_named_type(field.type).name not in SMALL
    ]
    assert lacking == []


def test_what_says_how_many_there_are_exists() -> None:
    for type_, name, field in OUTPUTS:
        if stated := directive_of(ListSize, field):
            assert set(stated.slicing_arguments or ()) <= set(field.args), f"{type_.name}.{name}"
            returned: Any = get_named_type(field.type)
            assert set(stated.sized_fields or ()) <= set(getattr(returned, "fields", ())), f"{type_.name}.{name}"


def test_costs_stand_only_where_they_are_counted() -> None:
    """Not at arguments and input fields, where the directive may stand too."""
    inputs = [field for _, _, field in FIELDS if not isinstance(field, GraphQLField)]
    arguments = [argument for _, _, field in OUTPUTS for argument in field.args.values()]
    assert len(inputs) > 20
    assert len(arguments) > 20
    assert not any(directive_of(Cost, one) for one in (*inputs, *arguments))


def test_they_are_printed_with_words_and_without_defaults() -> None:
    text = print_schema()
    assert '"""The least role."""\n  role: Role!' in text
    assert 'JobConnection! @listSize(slicingArguments: ["first", "last"], sizedFields: ["edges", "nodes"])\n' in text
    assert "): SubmitJobPayload! @needs(role: SUBMITTER) @cost(weight: 10)\n" in text
    assert "type PageInfo @cost(weight: 0) {" in text


def _is_list(field: GraphQLField) -> bool:
    return is_list_type(field.type.of_type if is_non_null_type(field.type) else field.type)
