"""What was compiled of one operation, kept with its document."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from graphql import (
    GraphQLAbstractType,
    GraphQLField,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLOutputType,
    is_abstract_type,
    is_leaf_type,
    is_object_type,
)
from graphql.execution.collect_fields import FieldDetailsList, GroupedFieldSet
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.cast import TYPE_CAST_ATTRIBUTE
from strawberry.types.field import StrawberryField

from starforge.api.mirror import Mirror, reader
from starforge.api.transport.compiled.leaves import Complete, Unplain, leaf

if TYPE_CHECKING:
    from starforge.api.transport.compiled.executor import CompiledExecutor

_PLAIN_RESOLVER = f"{GraphQLCoreConverter.from_resolver.__qualname__}.<locals>._get_basic_result"
Read = Callable[[Any], Any]
"""From the object that has the field to what the answer holds."""
Split = tuple[Mapping[str, Read], GroupedFieldSet]
"""Fields that are compiled, and those left to graphql-core, by their names in the answer."""


class Plan:
    """Of one operation with one set of values of the variables that steer it.

    What is remembered is found by the identity of graphql-core's lists, which are kept here for as long.
    """

    def __init__(self) -> None:
        self.root: GroupedFieldSet | None = None
        self.sub_fields: dict[Any, Any] = {}
        self._splits: dict[int, tuple[GroupedFieldSet, Split]] = {}
        self._completers: dict[tuple[int, int], tuple[FieldDetailsList, Complete | None]] = {}

    def split(self, executor: "CompiledExecutor", parent: GraphQLObjectType, grouped: GroupedFieldSet) -> Split:
        known = self._splits.get(id(grouped))
        if known is None or known[0] is not grouped:
            known = self._splits[id(grouped)] = (grouped, self._split(executor, parent, grouped))
        return known[1]

    def _split(self, executor: "CompiledExecutor", parent: GraphQLObjectType, grouped: GroupedFieldSet) -> Split:
        found = {name: self._reader(executor, parent, details) for name, details in grouped.items()}
        reads = {name: read for name, read in found.items() if read is not None}
        return reads, {name: details for name, details in grouped.items() if name not in reads}

    def completer(
        self, executor: "CompiledExecutor", kind: GraphQLOutputType, details: FieldDetailsList
    ) -> Complete | None:
        """What completes a value of `kind` that is not null, with everything below it; None if it takes a resolver."""
        key = (id(kind), id(details))
        known = self._completers.get(key)
        if known is None or known[0] is not details:
            known = self._completers[key] = (details, self._completer(executor, kind, details))
        return known[1]

    def _completer(
        self, executor: "CompiledExecutor", kind: GraphQLOutputType, details: FieldDetailsList
    ) -> Complete | None:
        if isinstance(kind, GraphQLNonNull):
            return self.completer(executor, kind.of_type, details)
        if isinstance(kind, GraphQLList):
            item = self.completer(executor, kind.of_type, details)
            return _list(item, nullable=not isinstance(kind.of_type, GraphQLNonNull)) if item else None
        if is_leaf_type(kind):
            return leaf(kind)
        if is_object_type(kind):
            return self._object(executor, kind, details)
        return self._abstract(executor, kind, details) if is_abstract_type(kind) else None

    def _object(
        self, executor: "CompiledExecutor", kind: GraphQLObjectType, details: FieldDetailsList
    ) -> Complete | None:
        origin = _origin(kind)
        reads, rest = self.split(executor, kind, executor.collect_subfields(kind, details).grouped_field_set)
        return _object(origin, reads) if origin is not None and not rest else None

    def _abstract(self, executor: "CompiledExecutor", kind: GraphQLAbstractType, details: FieldDetailsList) -> Complete:
        possible = {_origin(one): one for one in executor.schema.get_possible_types(kind)}

        def complete(value: Any) -> Any:
            runtime = possible.get(type(value))
            if runtime is None or hasattr(value, TYPE_CAST_ATTRIBUTE):
                raise Unplain
            done = self.completer(executor, runtime, details)
            if done is None:
                raise Unplain
            return done(value)

        return complete

    def _reader(
        self, executor: "CompiledExecutor", parent: GraphQLObjectType, details: FieldDetailsList
    ) -> Read | None:
        name = details[0].node.name.value
        if name == "__typename":
            text = parent.name
            return lambda _: text
        field = parent.fields.get(name)
        attribute = _attribute(field) if field and not details[0].node.arguments else None
        origin = _origin(parent)
        if field is None or attribute is None or origin is None:
            return None
        complete = self.completer(executor, field.type, details)
        if complete is None:
            return None
        read = reader(cast("Any", origin), attribute) if issubclass(origin, Mirror) else _getter(attribute)
        return _required(read, complete) if isinstance(field.type, GraphQLNonNull) else _optional(read, complete)


def _origin(kind: GraphQLObjectType) -> type | None:
    """The class of the values of an object type; None if that does not say what they are."""
    definition = kind.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    if not isinstance(definition, StrawberryObjectDefinition) or definition.concrete_of or definition.is_type_of:
        return None
    return definition.origin


def _attribute(field: GraphQLField) -> str | None:
    """The attribute that a field is read from; None if it takes more than reading."""
    known = field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    if field.args or not isinstance(known, StrawberryField) or not known.is_basic_field:
        return None
    # A wrapper of the resolver, as one that looks at rights, may carry its name and its attributes, but not its code.
    code = getattr(field.resolve, "__code__", None)
    plain = code is not None and code.co_qualname == _PLAIN_RESOLVER and known.default_resolver is getattr
    return known.python_name if plain else None


def _getter(attribute: str) -> Read:
    return lambda source: getattr(source, attribute)


def _required(read: Read, complete: Complete) -> Read:
    def required(source: Any) -> Any:
        value = read(source)
        if value is None:
            raise Unplain
        return complete(value)

    return required


def _optional(read: Read, complete: Complete) -> Read:
    def optional(source: Any) -> Any:
        value = read(source)
        return None if value is None else complete(value)

    return optional


def _list(item: Complete, *, nullable: bool) -> Complete:
    def complete(values: Any) -> Any:
        if type(values) is not list and type(values) is not tuple:
            raise Unplain
        if nullable:
            return [None if value is None else item(value) for value in values]
        if None in values:
            raise Unplain
        return [item(value) for value in values]

    return complete


def _object(origin: type, reads: Mapping[str, Read]) -> Complete:
    parts = tuple(reads.items())

    def complete(source: Any) -> Any:
        if type(source) is not origin:
            raise Unplain
        return {name: read(source) for name, read in parts}

    return complete
