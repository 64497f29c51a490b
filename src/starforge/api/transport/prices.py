"""What the fields of a schema cost, read from its @cost and @listSize directives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLNamedType,
    GraphQLSchema,
    SchemaMetaFieldDef,
    TypeMetaFieldDef,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_interface_type,
    is_introspection_type,
    is_list_type,
    is_object_type,
)

from starforge.api.directives import Cost, ListSize, directive_of


@dataclass(frozen=True)
class Sizing:
    """How many items a field is taken to return: the largest of its slicing arguments, else `assumed`."""

    assumed: int = 1
    arguments: tuple[str, ...] = ()
    defaults: Mapping[str, Any] | None = None
    """Of the slicing arguments that have one in the schema."""
    sized_fields: frozenset[str] = frozenset()
    """Fields of the returned object that hold the items; empty if the field is the list itself."""


ONE = Sizing()


@dataclass(frozen=True)
class Price:
    """Of one field: `once` for each time it is resolved, `each` for every item that it returns."""

    once: int
    each: int
    sizing: Sizing
    type_name: str
    """Named type that it returns."""


class Prices:
    """Of every field of a schema, by the type that has it and its name."""

    def __init__(self, schema: GraphQLSchema) -> None:
        own, about = _fields(schema, is_ours=True), _fields(schema, is_ours=False)
        self._prices = {(type_.name, name): _price(field) for type_, name, field in own}
        sizes = _sizes(schema)
        self._prices |= {(type_.name, name): _about(name, field, sizes) for type_, name, field in about}
        self._query = schema.query_type.name if schema.query_type else ""

    def of(self, type_name: str, field_name: str) -> Price | None:
        """None for `__typename`, and for a field that the schema does not have: validation names it."""
        if type_name == self._query and field_name in _META:
            return _META[field_name]
        return self._prices.get((type_name, field_name))


def _fields(schema: GraphQLSchema, *, is_ours: bool) -> Iterator[tuple[GraphQLNamedType, str, GraphQLField]]:
    for type_ in schema.type_map.values():
        if is_introspection_type(type_) is is_ours:
            continue
        if is_object_type(type_) or is_interface_type(type_):
            for name, field in type_.fields.items():
                yield type_, name, field


def _price(field: GraphQLField) -> Price:
    type_, stated = get_named_type(field.type), directive_of(Cost, field)
    return Price(stated.weight if stated else 0, _weight(type_), _sizing(field), type_.name)


def _weight(type_: GraphQLNamedType) -> int:
    stated = directive_of(Cost, type_)
    return stated.weight if stated else int(is_composite_type(type_))


def _sizing(field: GraphQLField) -> Sizing:
    stated = directive_of(ListSize, field)
    if stated is None:
        return ONE
    arguments = tuple(stated.slicing_arguments or ())
    defaults = {name: field.args[name].default_value for name in arguments}
    return Sizing(stated.assumed_size or 1, arguments, defaults, frozenset(stated.sized_fields or ()))


def _about(name: str, field: GraphQLField, sizes: Mapping[str, int]) -> Price:
    """Of a field about the schema: a list costs as many points as there are items on average, all else nothing."""
    type_ = get_named_type(field.type)
    is_list = is_composite_type(type_) and is_list_type(get_nullable_type(field.type))
    return Price(0, int(is_list), Sizing(sizes.get(name, 1)), type_.name)


def _sizes(schema: GraphQLSchema) -> dict[str, int]:
    """How many items the lists about this schema have, rounded up."""
    types = list(schema.type_map.values())
    fields = [field for type_ in types for field in getattr(type_, "fields", {}).values()]
    values = sum(len(getattr(type_, "values", ())) for type_ in types)
    arguments = sum(len(getattr(field, "args", ())) for field in fields)
    per_type = {"fields": len(fields), "inputFields": len(fields), "enumValues": values, "possibleTypes": len(types)}
    sizes = {name: ceil(number / len(types)) for name, number in per_type.items()}
    return sizes | {
        "types": len(types),
        "args": ceil(arguments / (len(fields) or 1)),
        "directives": len(schema.directives),
    }


_META = {"__schema": _price(SchemaMetaFieldDef), "__type": _price(TypeMetaFieldDef)}
INTROSPECTION = frozenset(_META)
"""Names of the fields of the query type that are about the schema."""
