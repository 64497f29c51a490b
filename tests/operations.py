"""What dashboards and scripts send (tests/data/operations.graphql), cut down to what our schema has by now.

`python -m tests.operations` renews tests/data/pruned.txt, the list of what is cut away.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphql import (
    ArgumentNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInputField,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    ListValueNode,
    NamedTypeNode,
    Node,
    ObjectValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    ValueNode,
    VariableDefinitionNode,
    VariableNode,
    Visitor,
    build_schema,
    get_named_type,
    is_input_object_type,
    parse,
    print_ast,
    visit,
)

from starforge.api.schema import print_schema

DATA = Path(__file__).parent / "data"
SENT = DATA / "operations.graphql"
PRUNED = DATA / "pruned.txt"
RELEASED = DATA / "pruned.released.txt"
Record = Callable[[str], None]


@dataclass(frozen=True)
class Operation:
    """One of the operations. `document` is what is left of it, None if nothing is; `pruned` is what was cut away."""

    name: str
    kind: str
    document: str | None
    variables: frozenset[str]
    pruned: Sequence[str]


def our_schema() -> GraphQLSchema:
    return build_schema(print_schema())


def operations(schema: GraphQLSchema) -> Iterator[Operation]:
    """Every operation, in the order of the file."""
    document = parse(SENT.read_text())
    fragments = {one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)}
    for one in document.definitions:
        if isinstance(one, OperationDefinitionNode):
            yield _Pruning(schema, fragments).operation(one)


def pruned_lines(some: Sequence[Operation]) -> list[str]:
    """What was cut away, a line for each thing and operation."""
    return [f"{one.name}: {what}" for one in some for what in one.pruned]


@dataclass
class _Pruning:
    """The pruning of one operation with the fragments that it uses."""

    schema: GraphQLSchema
    fragments: Mapping[str, FragmentDefinitionNode]
    pruned: dict[str, None] = field(default_factory=dict)
    kept: dict[str, FragmentDefinitionNode | None] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def operation(self, node: OperationDefinitionNode) -> Operation:
        name, kind = node.name.value if node.name else "", node.operation.value
        root = self.schema.get_root_type(node.operation)
        self.unknown = {one.variable.name.value for one in node.variable_definitions or () if not self._known(one.type)}
        self.pruned |= dict.fromkeys(f"${one}" for one in sorted(self.unknown))
        selection = self._selection(node.selection_set, root) if root else None
        if selection is None:
            return Operation(name, kind, None, frozenset(), [*sorted(self.pruned), "all of it"])
        used = self._used(selection)
        variables = frozenset(
            name for part in (_with(node, selection_set=selection), *used) for name in _variables(part)
        )
        wanted = tuple(one for one in node.variable_definitions or () if one.variable.name.value in variables)
        whole = _with(node, selection_set=selection, variable_definitions=wanted)
        text = print_ast(DocumentNode(definitions=(whole, *used)))
        return Operation(name, kind, text, variables, sorted(self.pruned))

    def _used(self, selection: SelectionSetNode) -> list[FragmentDefinitionNode]:
        """Fragments that are still spread somewhere."""
        found: dict[str, FragmentDefinitionNode] = {}
        waiting: list[Node] = [selection]
        while waiting:
            for name in _spreads(waiting.pop()):
                fragment = self.kept.get(name)
                if fragment and name not in found:
                    found[name] = fragment
                    waiting.append(fragment)
        return list(found.values())

    def _known(self, node: Node) -> bool:
        while not isinstance(node, NamedTypeNode):
            node = node.type  # type: ignore[attr-defined]  # of a list or of what is not null
        return node.name.value in self.schema.type_map

    def _selection(self, node: SelectionSetNode, parent: GraphQLNamedType | None) -> SelectionSetNode | None:
        left = tuple(kept for one in node.selections if (kept := self._selected(one, parent)))
        return _with(node, selections=left) if left else None

    def _selected(self, node: SelectionNode, parent: Any) -> SelectionNode | None:
        if isinstance(node, FragmentSpreadNode):
            return node if self._fragment(node.name.value) else None
        if isinstance(node, InlineFragmentNode):
            return self._inline(node, parent)
        assert isinstance(node, FieldNode)
        return self._field(node, parent)

    def _inline(self, node: InlineFragmentNode, parent: Any) -> InlineFragmentNode | None:
        on = node.type_condition.name.value if node.type_condition else parent.name
        if on not in self.schema.type_map:
            return self._cut(f"... on {on}")
        selection = self._selection(node.selection_set, self.schema.type_map[on])
        return _with(node, selection_set=selection) if selection else None

    def _fragment(self, name: str) -> FragmentDefinitionNode | None:
        if name not in self.kept:
            node = self.fragments[name]
            on = node.type_condition.name.value
            known = self.schema.type_map.get(on)
            selection = self._selection(node.selection_set, known) if known else self._cut(f"... on {on}")
            self.kept[name] = _with(node, selection_set=selection) if selection else None
        return self.kept[name]

    def _field(self, node: FieldNode, parent: Any) -> FieldNode | None:
        name = node.name.value
        if name == "__typename":
            return node
        known = parent.fields.get(name)
        if known is None:
            return self._cut(f"{parent.name}.{name}")
        arguments = tuple(
            kept for one in node.arguments or () if (kept := self._argument(one, known.args, f"{parent.name}.{name}"))
        )
        selection = None
        if node.selection_set:
            selection = self._selection(node.selection_set, get_named_type(known.type))
            if selection is None:
                return None
        return _with(node, arguments=arguments, selection_set=selection)

    def _argument(self, node: ArgumentNode, known: Mapping[str, Any], of: str) -> ArgumentNode | None:
        name = node.name.value
        if name not in known or (isinstance(node.value, VariableNode) and node.value.name.value in self.unknown):
            return self._cut(f"{of}({name})")
        return _with(node, value=self._value(node.value, get_named_type(known[name].type)))

    def _value(self, node: ValueNode, type_: Any) -> ValueNode:
        if isinstance(node, ListValueNode):
            return _with(node, values=tuple(self._value(one, type_) for one in node.values))
        if not isinstance(node, ObjectValueNode) or not is_input_object_type(type_):
            return node
        known: Mapping[str, GraphQLInputField] = type_.fields
        left = [one for one in node.fields if one.name.value in known or self._cut(f"{type_.name}.{one.name.value}")]
        inner = [(one, self._value(one.value, get_named_type(known[one.name.value].type))) for one in left]
        return _with(node, fields=tuple(_with(one, value=value) for one, value in inner))

    def _cut(self, what: str) -> None:
        self.pruned[what] = None


def _with(node: Any, **changed: Any) -> Any:
    """A node with some of its parts changed."""
    return type(node)(**{key: getattr(node, key) for key in node.keys if key != "loc"} | changed)


def _variables(node: Node) -> list[str]:
    return [one.name.value for one in _below(node, VariableNode)]


def _spreads(node: Node) -> list[str]:
    return [one.name.value for one in _below(node, FragmentSpreadNode)]


def _below(node: Node, kind: type[Any]) -> list[Any]:
    """Nodes of a kind within a node, but for those that declare variables."""
    found: list[Any] = []

    class Finds(Visitor):
        def enter(self, node: Node, *_: Any) -> Any:
            if isinstance(node, VariableDefinitionNode):
                return self.SKIP
            if isinstance(node, kind):
                found.append(node)
            return None

    visit(node, Finds())
    return found


if __name__ == "__main__":
    PRUNED.write_text("\n".join(pruned_lines(list(operations(our_schema())))) + "\n")
