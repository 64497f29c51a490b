"""Input objects by a shorter way than strawberry's own, which finds out anew for every request what each field is."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Any

from strawberry import Schema
from strawberry.types.arguments import InputContext
from strawberry.types.base import StrawberryMaybe, StrawberryObjectDefinition

Build = Callable[[type, Mapping[str, Any], InputContext], Any]


def read_inputs_plainly(schema: Schema) -> None:
    """Make every input type of `schema` build its objects so; twice is as good as once."""
    for known in schema.schema_converter.type_map.values():
        definition = known.definition
        if isinstance(definition, StrawberryObjectDefinition) and definition.is_input and not definition.from_input:
            definition.from_input = _builder(schema, definition)


def _builder(schema: Schema, definition: StrawberryObjectDefinition) -> Build | None:
    name_of = schema.config.name_converter.from_field
    fields = {
        name_of(field): (field.python_name, field.resolve_type(type_definition=definition))
        for field in definition.fields
    }
    if any(isinstance(kind, StrawberryMaybe) for _, kind in fields.values()):
        return None  # for these, null differs from nothing
    absent = {
        field.python_name: None
        for field in definition.fields
        if field.default_value is MISSING and field.default_factory is MISSING
    }

    def build(cls: type, given: Mapping[str, Any], context: InputContext) -> Any:
        values: dict[str, Any] = dict(absent)
        for name, value in given.items():
            attribute, kind = fields[name]
            values[attribute] = None if value is None else context.convert(value, kind, name)
        return cls(**values)

    return build
