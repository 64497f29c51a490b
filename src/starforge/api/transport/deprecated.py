"""Who still sends what is going: the deprecated parts of the schema that a document uses.

A part that goes says so in one form, made by `going` and read by `read_reason`: its replacement, the day it was
deprecated and the earliest day of its removal, `NOTICE` later at least.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from graphql import (
    ArgumentNode,
    DocumentNode,
    EnumValueNode,
    FieldNode,
    GraphQLSchema,
    ObjectFieldNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    get_named_type,
    visit,
)

NOTICE = timedelta(days=180)
_REASON = re.compile(
    r"^Use `(?P<replacement>[^`]+)`\. (?:.+ )?Deprecated on (?P<since>\d{4}-\d\d-\d\d), "
    r"to be removed on (?P<removal>\d{4}-\d\d-\d\d) at the earliest\.$"
)


@dataclass(frozen=True)
class Going:
    """What the reason of a deprecation says."""

    replacement: str
    """Coordinate of what to use, for example `Job.state`."""
    since: date
    removal: date
    """It is not removed before this day."""


@dataclass(frozen=True)
class Deprecation:
    """A deprecated part of the schema that a document uses."""

    coordinate: str
    """`Type.field`, `Type.field(argument:)`, `Input.field` or `Enum.VALUE`."""
    reason: str

    def told(self) -> dict[str, str]:
        """As it stands in `extensions.deprecations`: element, message, and removal where the reason names the day."""
        known = read_reason(self.reason)
        removal = {"removal": known.removal.isoformat()} if known else {}
        return {"element": self.coordinate, "message": self.reason, **removal}


def going(*, replacement: str, since: date, removal: date, more: str = "") -> str:
    """The reason to write into a deprecation. ValueError if it gives less than `NOTICE`."""
    if removal - since < NOTICE:
        raise ValueError(f"{removal} is less than {NOTICE.days} days after {since}.")
    detail = f"{more} " if more else ""
    return f"Use `{replacement}`. {detail}Deprecated on {since}, to be removed on {removal} at the earliest."


def read_reason(reason: str) -> Going | None:
    """What a reason says, or None if it is not of the form that `going` writes."""
    match = _REASON.match(reason)
    if match is None:
        return None
    try:
        days = date.fromisoformat(match["since"]), date.fromisoformat(match["removal"])
    except ValueError:
        return None
    return Going(match["replacement"], *days)


def deprecations(document: DocumentNode, schema: GraphQLSchema) -> list[Deprecation]:
    """Each deprecated field, argument, input field and enum value in a valid document, once, in its order.

    It depends on nothing else, so that it can be kept with the document. What variables hold is not in it.
    """
    types = TypeInfo(schema)
    finder = _Finder(types)
    visit(document, TypeInfoVisitor(types, finder))
    return list(finder.found)


def extension(found: list[Deprecation]) -> Mapping[str, Any]:
    """What to add to the `extensions` of an answer: nothing, if nothing is deprecated."""
    return {"deprecations": [one.told() for one in found]} if found else {}


class _Finder(Visitor):
    """Asked for each node after the type information has moved on to it."""

    def __init__(self, types: TypeInfo) -> None:
        super().__init__()
        self._types = types
        self._name = ""
        self.found: dict[Deprecation, None] = {}

    def _add(self, coordinate: str, part: Any) -> None:
        reason = getattr(part, "deprecation_reason", None)
        if reason is not None:
            self.found[Deprecation(coordinate, reason)] = None

    def _field(self) -> str:
        parent = self._types.get_parent_type()
        return f"{parent.name}.{self._name}" if parent else self._name

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        self._name = node.name.value
        self._add(self._field(), self._types.get_field_def())

    def enter_argument(self, node: ArgumentNode, *_: Any) -> None:
        directive = self._types.get_directive()
        owner = f"@{directive.name}" if directive else self._field()
        self._add(f"{owner}({node.name.value}:)", self._types.get_argument())

    def enter_object_field(self, node: ObjectFieldNode, *_: Any) -> None:
        parent = get_named_type(self._types.get_parent_input_type())
        fields: Mapping[str, Any] = getattr(parent, "fields", {})
        if parent is not None:
            self._add(f"{parent.name}.{node.name.value}", fields.get(node.name.value))

    def enter_enum_value(self, node: EnumValueNode, *_: Any) -> None:
        type_ = get_named_type(self._types.get_input_type())
        if type_ is not None:
            self._add(f"{type_.name}.{node.value}", self._types.get_enum_value())
