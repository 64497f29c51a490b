"""The directives of the schema: what a field costs, how many items a list is taken to have, and who may ask for it."""

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar

import strawberry
from graphql import GraphQLField, GraphQLObjectType, GraphQLResolveInfo
from strawberry import UNSET, Schema
from strawberry.schema_directive import Location

from starforge.domain.rights import Role

D = TypeVar("D")


@strawberry.schema_directive(
    name="cost",
    description="What one occurrence adds to the cost of a document; without it an object costs 1 and a scalar or enum 0.",
    locations=[
        Location.FIELD_DEFINITION,
        Location.OBJECT,
        Location.ENUM,
        Location.SCALAR,
        Location.ARGUMENT_DEFINITION,
        Location.INPUT_FIELD_DEFINITION,
    ],
)
class Cost:
    weight: int


@strawberry.schema_directive(
    name="listSize",
    description="How many items a list field is taken to return when the cost of a document is computed.",
    locations=[Location.FIELD_DEFINITION],
)
class ListSize:
    assumed_size: int | None = UNSET
    slicing_arguments: list[str] | None = UNSET
    sized_fields: list[str] | None = UNSET
    require_one_slicing_argument: bool | None = True


@strawberry.schema_directive(
    name="needs",
    description=(
        "The least role a caller needs; without it VIEWER is enough, and what lies in other projects reads as absent."
    ),
    locations=[Location.FIELD_DEFINITION, Location.OBJECT],
)
class Needs:
    role: Role


_ARGUMENTS: Mapping[type, Mapping[str, str]] = {
    Cost: {"weight": "Points for one occurrence."},
    ListSize: {
        "assumedSize": "Number of items to assume where no argument says it.",
        "slicingArguments": "Arguments whose value is the number of items.",
        "sizedFields": "Fields of the returned object that hold the items.",
        "requireOneSlicingArgument": "Whether a document must give exactly one of the slicing arguments.",
    },
    Needs: {"role": "The least role."},
}


def cost(weight: int) -> Cost:
    return Cost(weight=weight)


def list_size(assumed: int) -> ListSize:
    """Of a field whose list has no argument that bounds it."""
    return _sized(assumed_size=assumed)


def page_size(*arguments: str) -> ListSize:
    """Of a connection."""
    return _sized(slicing_arguments=list(arguments or ("first", "last")), sized_fields=["edges", "nodes"])


def sized_by(argument: str, *, field: str) -> ListSize:
    """Of a payload with as many items in `field` as `argument`, which need not be given, says."""
    return _sized(slicing_arguments=[argument], sized_fields=[field], require_one_slicing_argument=False)


def _sized(**given: Any) -> ListSize:
    # UNSET for what is not given, so that the printed schema does not repeat defaults.
    return ListSize(**{"require_one_slicing_argument": UNSET, **given})


def needs(role: Role) -> Needs:
    return Needs(role=role)


def directive_of(kind: type[D], element: Any) -> D | None:
    """The directive of this kind on a field or type of a GraphQL schema that strawberry made."""
    definition = (element.extensions or {}).get("strawberry-definition")
    return next((one for one in getattr(definition, "directives", ()) if isinstance(one, kind)), None)


def with_directives(schema: Schema) -> None:
    """Puts the directives of a new schema in force: @needs is checked where it stands, and arguments have words."""
    for _, field, role in guarded_fields(schema):
        _guard(field, role)
    for kind, directive in schema._schema_graphql_directives.items():
        for name, words in _ARGUMENTS.get(kind, {}).items():
            directive.args[name].description = words


def guarded_fields(schema: Schema) -> Iterator[tuple[str, GraphQLField, Role]]:
    """Every field with @needs, or of a type with @needs, as `Type.field`, with the role it needs."""
    for type_ in schema._schema.type_map.values():
        for name, field in type_.fields.items() if isinstance(type_, GraphQLObjectType) else ():
            if needed := directive_of(Needs, field) or directive_of(Needs, type_):
                yield f"{type_.name}.{name}", field, needed.role


def _guard(field: GraphQLField, role: Role) -> None:
    if field.subscribe:
        field.subscribe = _guarded(field.subscribe, role)
    elif field.resolve:
        field.resolve = _guarded(field.resolve, role)
    else:
        raise TypeError("A field with @needs has no resolver to guard.")


def _guarded(resolve: Callable[..., Any], role: Role) -> Callable[..., Any]:
    @wraps(resolve)
    def guarded(source: Any, info: GraphQLResolveInfo[Any], **arguments: Any) -> Any:
        info.context.caller.demand(role)
        return resolve(source, info, **arguments)

    return guarded
