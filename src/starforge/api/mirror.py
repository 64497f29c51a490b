"""Makes an object of the schema from one of the domain whose fields have the same names."""

from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def mirror(cls: type[T], row: object, /, **given: Any) -> T:
    """A `cls` with the fields in `given`, and every other one taken from `row` by its name."""
    names = [field.name for field in fields(cls) if field.init and field.name not in given]  # type: ignore[arg-type]
    return cls(**{name: getattr(row, name) for name in names}, **given)
