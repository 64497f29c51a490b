"""How large a document is and what it costs, in one pass however often a fragment is spread.

strawberry's own limiters walk a fragment again for every spread, so that twenty small fragments which each spread the
next one twice take a million walks.

The cost of an operation is 1 for its root and, for every field, its own @cost each time it is resolved and that of the
type it returns (an object 1, a scalar or enum 0, unless stated) for every item. It is an upper bound: what @skip and
@include leave out counts, and so does what is asked for twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

from starforge.api.transport.cost import Selected, Selection
from starforge.api.transport.prices import Prices
from starforge.api.transport.slicing import slices_of


@dataclass(frozen=True)
class Size:
    """Levels of nested fields, and fields and aliases counted once per spread."""

    depth: int = 0
    fields: int = 0
    aliases: int = 0

    def beside(self, other: "Size") -> "Size":
        return Size(max(self.depth, other.depth), self.fields + other.fields, self.aliases + other.aliases)

    def or_larger(self, other: "Size") -> "Size":
        return Size(*(max(a, b) for a, b in zip(self._numbers, other._numbers, strict=True)))

    @property
    def _numbers(self) -> tuple[int, int, int]:
        return self.depth, self.fields, self.aliases


EMPTY = Size()


@dataclass(frozen=True)
class Measured:
    """`size` is that of the largest operation in each respect; `visits` is how many selections the pass looked at."""

    size: Size
    operations: Mapping[str | None, Selected]
    visits: int


def measure(document: DocumentNode, schema: GraphQLSchema, prices: Prices) -> Measured:
    """Cycles and fragments, types and fields that do not exist count as empty: validation names them."""
    measuring = _Pass(document, prices)
    size, operations = EMPTY, {}
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            root = schema.get_root_type(definition.operation)
            here, selected = measuring.selections(definition.selection_set, root.name if root else "")
            size = size.or_larger(here)
            operations[definition.name.value if definition.name else None] = selected
    return Measured(size, operations, measuring.visits)


_Found = tuple[Size, Selected]
_NOTHING: _Found = (EMPTY, Selected((), ()))


class _Pass:
    def __init__(self, document: DocumentNode, prices: Prices) -> None:
        definitions = document.definitions
        self._fragments = {node.name.value: node for node in definitions if isinstance(node, FragmentDefinitionNode)}
        self._prices = prices
        self._known: dict[str, _Found] = {}
        self.visits = 0

    def selections(self, selection_set: SelectionSetNode | None, parent: str) -> _Found:
        size = EMPTY
        fields: list[Selection] = []
        spread: list[Selected] = []
        for node in selection_set.selections if selection_set else ():
            self.visits += 1
            if isinstance(node, FieldNode):
                here, field = self._field(node, parent)
                fields += field
            else:
                here, below = self._spread(node, parent)
                spread.append(below)
            size = size.beside(here)
        return size, Selected(tuple(fields), tuple(spread))

    def _field(self, node: FieldNode, parent: str) -> tuple[Size, Sequence[Selection]]:
        price = self._prices.of(parent, node.name.value)
        size, below = self.selections(node.selection_set, price.type_name if price else "")
        size = Size(size.depth + 1, size.fields + 1, size.aliases + (node.alias is not None))
        if price is None:
            return size, ()
        slices = slices_of(node.arguments, price.sizing)
        return size, (Selection(node.name.value, price, slices, below),)

    def _spread(self, node: object, parent: str) -> _Found:
        if isinstance(node, FragmentSpreadNode):
            return self._fragment(node.name.value)
        if isinstance(node, InlineFragmentNode):
            named = node.type_condition
            return self.selections(node.selection_set, named.name.value if named else parent)
        return _NOTHING

    def _fragment(self, name: str) -> _Found:
        if name not in self._known:
            self._known[name] = _NOTHING  # what a spread of itself, from below, finds
            if fragment := self._fragments.get(name):
                self._known[name] = self.selections(fragment.selection_set, fragment.type_condition.name.value)
        return self._known[name]
