"""How large a document is once its fragments are spread out, in one pass however often a fragment is spread.

strawberry's own limiters walk a fragment again for every spread, so that twenty small fragments which each spread the
next one twice take a million walks.
"""

from dataclasses import dataclass

from graphql import DocumentNode, FieldNode, FragmentDefinitionNode, FragmentSpreadNode, SelectionSetNode
from graphql.language import OperationDefinitionNode, SelectionNode


@dataclass(frozen=True)
class Size:
    """Levels of nested fields, and fields and aliases counted once per spread."""

    depth: int = 0
    fields: int = 0
    aliases: int = 0

    def beside(self, other: "Size") -> "Size":
        return Size(max(self.depth, other.depth), self.fields + other.fields, self.aliases + other.aliases)


EMPTY = Size()


def size_of(document: DocumentNode) -> Size:
    """Of the largest operation in each respect. Cycles and unknown fragments count as empty: validation names them."""
    measure = _Measure(document)
    largest = EMPTY
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            size = measure.selections(definition.selection_set)
            largest = Size(*(max(a, b) for a, b in zip(_numbers(largest), _numbers(size), strict=True)))
    return largest


def _numbers(size: Size) -> tuple[int, int, int]:
    return size.depth, size.fields, size.aliases


class _Measure:
    def __init__(self, document: DocumentNode) -> None:
        definitions = document.definitions
        self._fragments = {node.name.value: node for node in definitions if isinstance(node, FragmentDefinitionNode)}
        self._known: dict[str, Size] = {}

    def selections(self, selection_set: SelectionSetNode | None) -> Size:
        total = EMPTY
        for selection in selection_set.selections if selection_set else ():
            total = total.beside(self._selection(selection))
        return total

    def _selection(self, selection: SelectionNode) -> Size:
        if isinstance(selection, FragmentSpreadNode):
            return self._fragment(selection.name.value)
        below = self.selections(getattr(selection, "selection_set", None))
        if not isinstance(selection, FieldNode):
            return below
        return Size(below.depth + 1, below.fields + 1, below.aliases + (selection.alias is not None))

    def _fragment(self, name: str) -> Size:
        if name not in self._known:
            self._known[name] = EMPTY  # what a spread of itself, from below, finds
            fragment = self._fragments.get(name)
            self._known[name] = self.selections(fragment.selection_set) if fragment else EMPTY
        return self._known[name]
