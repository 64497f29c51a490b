"""Makes an object of the schema from one of the domain whose fields have the same names."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from strawberry.types import get_object_definition

T = TypeVar("T")
Read = Callable[[Any], Any]
Made = Mapping[str, str | Read]


class Mirror:
    """An object of the schema that reads a field from its row when somebody asks for it, so that what nobody asks for
    costs nothing.

    `made` says where a field comes from: a path of attributes from the object itself, or a function of it. Any other
    field is the attribute of the same name of `mirrored`, the row of the domain. What else these need is given to
    `mirror` and private.
    """

    made: ClassVar[Made] = {}
    mirrored: ClassVar[Any]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if "mirrored" not in self.__dict__ or name not in names_of(type(self)):
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}", name=name, obj=self)
            value = self.__dict__[name] = reader(type(self), name)(self)
            return value


def mirror(cls: type[T], row: object, /, **given: Any) -> T:
    """A `cls` with the fields in `given`, and every other one taken from `row` by its name; a Mirror does so late."""
    if issubclass(cls, Mirror):
        if not given.keys().isdisjoint(_shown(cast("Any", cls))):
            raise TypeError(f"{cls.__name__} reads its fields late: say in `made` where {', '.join(given)} come from.")
        late = cls.__new__(cls)
        late.__dict__.update(given, mirrored=row)
        return late
    names = [field.name for field in fields(cls) if field.init and field.name not in given]  # type: ignore[arg-type]
    return cls(**{name: getattr(row, name) for name in names}, **given)


@cache
def reader(cls: type, name: str) -> Read:
    """What reads the field `name` from a `cls` that was made by `mirror`, unless it was given."""
    path = cast("type[Mirror]", cls).made.get(name, f"mirrored.{name}")
    return attrgetter(path) if isinstance(path, str) else path


@cache
def _shown(cls: type) -> frozenset[str]:
    return frozenset(field.name for field in get_object_definition(cls, strict=True).fields)


@cache
def names_of(cls: type) -> frozenset[str]:
    """Names of every field of `cls`."""
    return frozenset(field.name for field in fields(cls))
