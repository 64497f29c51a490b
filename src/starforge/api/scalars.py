"""Scalars and enums of the schema."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NewType

import strawberry
from graphql import GraphQLError
from strawberry.types.scalar import ScalarDefinition

BigInt = NewType("BigInt", int)
JSON = NewType("JSON", object)
_LARGEST = 2**53 - 1


def show_time(at: datetime) -> str:
    """RFC 3339 in UTC with milliseconds and the suffix Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: object) -> datetime:
    """The instant of an RFC 3339 text; GraphQLError if it is none or has no zone."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError as wrong:
        raise GraphQLError(f"{text!r} is not an instant such as 2026-03-01T09:30:00.000Z.") from wrong
    if at.tzinfo is None:
        raise GraphQLError(f"{text!r} has no time zone: end it in Z.")
    return at.astimezone(UTC)


def read_big(value: object) -> int:
    """An integer from a JSON number or a decimal string; GraphQLError beyond 2^53-1."""
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or abs(number) > _LARGEST:
        raise GraphQLError(f"{value!r} is not an integer of at most 2^53-1.")
    return number


SCALARS: Mapping[object, ScalarDefinition] = {
    datetime: strawberry.scalar(
        name="DateTime",
        description=(
            "An instant as RFC 3339 in UTC with milliseconds and the suffix Z, for example 2026-03-01T09:30:00.000Z."
        ),
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
        serialize=show_time,
        parse_value=read_time,
    ),
    BigInt: strawberry.scalar(
        name="BigInt",
        description=(
            "An integer sent as a JSON number and never beyond 2^53-1, so that JavaScript reads it exactly; "
            "a decimal string is accepted as input."
        ),
        serialize=int,
        parse_value=read_big,
    ),
    JSON: strawberry.scalar(
        name="JSON",
        description="A JSON value with no fixed shape, used only to show Kubernetes objects as they are.",
        serialize=lambda value: value,
        parse_value=lambda value: value,
    ),
}


def described(cls: type[Enum], description: str, values: Mapping[str, str], name: str | None = None) -> None:
    """Make an enum one of the schema, with words for each of its values."""
    enum = strawberry.enum(cls, description=description, name=name)
    definition: Any = enum.__strawberry_definition__  # type: ignore[attr-defined]
    for value in definition.values:
        value.description = values[value.name]
