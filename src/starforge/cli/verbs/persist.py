"""`starforge persist`: a manifest of documents, one for each operation in files of GraphQL. It asks no gateway."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from graphql import (
    DocumentNode,
    ExecutableDefinitionNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    Visitor,
    parse,
    print_ast,
    visit,
)

from starforge.api.transport.persisted import id_of
from starforge.cli.consoles import print_json
from starforge.cli.exits import ExitCode
from starforge.domain.errors import Problem, UserMistake

Node = TypeVar("Node", FragmentDefinitionNode, OperationDefinitionNode)


def run(files: Sequence[Path], *, by_name: bool) -> ExitCode:
    """Prints the manifest; fragments of any file serve the operations of all."""
    print_json(manifest({file.name: _text(file) for file in files}, by_name=by_name))
    return ExitCode.SUCCEEDED


def manifest(files: Mapping[str, str], *, by_name: bool = False) -> dict[str, str]:
    """Documents by `sha256:…` of their text, or by the name of their operation. Raises UserMistake."""
    definitions = [node for name, text in files.items() for node in _definitions(name, text)]
    fragments = _by_name(node for node in definitions if isinstance(node, FragmentDefinitionNode))
    operations = _by_name(node for node in definitions if isinstance(node, OperationDefinitionNode))
    documents = {name: _document(node, fragments) for name, node in operations.items()}
    return documents if by_name else {id_of(text): text for text in documents.values()}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _mistake(f"{file} can't be read as text.") from error


def _definitions(name: str, text: str) -> Sequence[ExecutableDefinitionNode]:
    try:
        nodes = parse(text, no_location=True).definitions
    except (GraphQLError, RecursionError) as error:
        where = "".join(f":{place.line}:{place.column}" for place in getattr(error, "locations", None) or ())
        raise _mistake(f"{name}{where} is not GraphQL: {getattr(error, 'message', error)}") from error
    found = [node for node in nodes if isinstance(node, ExecutableDefinitionNode)]
    if len(found) < len(nodes):
        raise _mistake(f"{name} has definitions of a schema: give files with operations and fragments.")
    return found


def _by_name(nodes: Iterable[Node]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in nodes:
        if node.name is None:
            raise _mistake("An operation has no name: give it one, so that its documents can be told apart.")
        if found.setdefault(node.name.value, node) is not node:
            raise _mistake(f"There are two called {node.name.value}: give each its own name.")
    return found


def _document(operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]) -> str:
    needed: dict[str, FragmentDefinitionNode] = {}
    waiting: list[ExecutableDefinitionNode] = [operation]
    while waiting:
        for name in sorted(_spreads(waiting.pop())):
            if name not in fragments:
                raise _mistake(f"There is no fragment called {name}: give the file that has it.")
            if name not in needed:
                needed[name] = fragments[name]
                waiting.append(fragments[name])
    nodes = (operation, *(needed[name] for name in sorted(needed)))
    return print_ast(DocumentNode(definitions=nodes))


class _Spreads(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: object) -> None:
        self.names.add(node.name.value)


def _spreads(node: ExecutableDefinitionNode) -> set[str]:
    """Names of the fragments that a definition spreads."""
    found = _Spreads()
    visit(node, found)
    return found.names


def _mistake(message: str) -> UserMistake:
    return UserMistake([Problem("INVALID", (), message)])
