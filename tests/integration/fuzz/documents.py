"""Documents made from the schema: nearly valid, or valid and nasty."""

import json
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_composite_type,
    is_enum_type,
    is_input_object_type,
    is_interface_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
    is_union_type,
)
from hypothesis import strategies as st

from tests.integration.fuzz.values import Values

DEPTH = 6
PAGES = ("first", "last")
BODY_MAX = 1024 * 1024
"""Larger ones are a matter of the transport, which hangs up before it has read them."""


@dataclass
class Asked:
    """One operation, as a client sends it."""

    kind: str
    query: str
    variables: dict[str, Any]

    def body(self) -> str:
        return json.dumps({"query": self.query, "variables": self.variables}, allow_nan=False)


@dataclass
class _Making:
    """What a document needs to know of its parts."""

    definitions: list[str] = field(default_factory=list)
    variables: dict[str, Any] = field(default_factory=dict)
    aliases: int = 0
    fields: int = 0


class Documents:
    def __init__(self, schema: GraphQLSchema, values: Values) -> None:
        self._schema = schema
        self._values = values

    def strategy(self, kind: str) -> st.SearchStrategy[Asked]:
        """`kind` is query, mutation or subscription."""
        root = getattr(self._schema, f"{kind}_type")

        @st.composite
        def make(draw: st.DrawFn) -> Asked:
            making = _Making()
            names = draw(
                st.lists(st.sampled_from(sorted(root.fields)), min_size=1, max_size=1 if kind == "subscription" else 3)
            )
            body = " ".join(self._field(draw, making, name, root.fields[name], 0) for name in names)
            definitions = f"({' '.join(making.definitions)})" if making.definitions else ""
            query = _hurt(draw, f"{kind}{definitions} {{ {body} }}")
            return Asked(kind, query, _disturbed(draw, making.variables))

        return make().filter(lambda asked: len(asked.body()) <= BODY_MAX)

    def _field(self, draw: st.DrawFn, making: _Making, name: str, about: GraphQLField, depth: int) -> str:
        making.fields += 1
        arguments = self._arguments(draw, making, about)
        alias = ""
        if arguments:  # the same name with other arguments can't be merged
            making.aliases += 1
            alias = f"a{making.aliases}: "
        return f"{alias}{name}{arguments}{self._below(draw, making, get_named_type(about.type), depth + 1)}"

    def _arguments(self, draw: st.DrawFn, making: _Making, about: GraphQLField) -> str:
        paged = draw(st.sampled_from(PAGES)) if "first" in about.args and "last" in about.args else None
        given = []
        for name, argument in about.args.items():
            needed = is_non_null_type(argument.type) or name == paged
            if not draw(st.integers(0, 19).map(lambda luck: luck != 0 if needed else luck < 6)):  # noqa: B023
                continue
            if name in PAGES and name != paged and draw(st.integers(0, 9)):
                continue
            given.append(f"{name}: {self._value(draw, making, name, argument.type, paged=name in PAGES)}")
        return f"({', '.join(given)})" if given else ""

    def _value(self, draw: st.DrawFn, making: _Making, name: str, kind: Any, *, paged: bool) -> str:
        few = st.integers(1, 4)
        value = draw(st.integers(0, 7).flatmap(lambda luck: self._values.of(kind, name) if luck == 0 else few)
                     if paged else self._values.of(kind, name))  # fmt: skip
        if draw(st.integers(0, 3)) == 0:
            return literal(value, kind)
        variable = f"v{len(making.definitions)}"
        making.definitions.append(f"${variable}: {kind}")
        making.variables[variable] = value
        return f"${variable}"

    def _below(self, draw: st.DrawFn, making: _Making, kind: Any, depth: int) -> str:
        if not is_composite_type(kind):
            return ""
        parts = [f"... on {one.name}{self._below(draw, making, one, depth)}"
                 for one in self._possible(draw, kind)]  # fmt: skip
        fields = {} if isinstance(kind, GraphQLUnionType) else kind.fields
        leaves = [name for name in fields if depth < DEPTH or not is_composite_type(get_named_type(fields[name].type))]
        if leaves and making.fields < 60:
            chosen = draw(st.lists(st.sampled_from(leaves), min_size=1, max_size=5, unique=True))
            parts += [self._field(draw, making, name, fields[name], depth) for name in chosen]
        return f" {{ __typename {' '.join(parts)} }}"

    def _possible(self, draw: st.DrawFn, kind: Any) -> list[Any]:
        if not (is_interface_type(kind) or is_union_type(kind)):
            return []
        possible = [one for one in self._schema.get_possible_types(kind) if is_object_type(one)]
        return draw(st.lists(st.sampled_from(possible), max_size=2, unique_by=lambda one: one.name))


def literal(value: Any, kind: Any) -> str:
    """A value as GraphQL writes it; names of an enum without quotes, where one is expected."""
    while is_non_null_type(kind) or (is_list_type(kind) and not isinstance(value, list)):
        kind = kind.of_type
    if isinstance(value, list):
        inner = kind.of_type if is_list_type(kind) else kind
        return f"[{', '.join(literal(one, inner) for one in value)}]"
    if isinstance(value, dict):
        fields = kind.fields if is_input_object_type(kind) else {}
        members = [
            f"{name or 'x'}: {literal(one, fields[name].type if name in fields else kind)}"
            for name, one in value.items()
        ]
        return f"{{{', '.join(members)}}}"
    if is_enum_type(kind) and isinstance(value, str) and value.isidentifier() and value.isascii():
        return value
    return json.dumps(value)


def _hurt(draw: st.DrawFn, query: str) -> str:
    """Mostly as it is; now and then with something cut out or put in."""
    if draw(st.integers(0, 24)):
        return query
    at = draw(st.integers(0, len(query)))
    put = draw(
        st.sampled_from(
            ["", "{", "}", "(", "@skip", "@include(if: $no)", "...no", "\x00", "\ud800", "$", '"', "#", "[" * 300]
        )
    )
    return query[:at] + put + query[at + draw(st.integers(0, 3)) :]


def _disturbed(draw: st.DrawFn, variables: dict[str, Any]) -> dict[str, Any]:
    match draw(st.integers(0, 24)):
        case 0:
            return {}
        case 1:
            return variables | {"unknown": [1, {"a": None}]}
        case 2:
            return dict.fromkeys(variables)
    return variables
