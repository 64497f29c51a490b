"""Reads starforge.yaml into the spec of a job, or into every problem that it has, each with its line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from starforge.cli.shapes import JOB_SPEC, Fields, ListOf, Number, Shape, Text
from starforge.domain.errors import Problem, SpecRefused

NAME = "starforge.yaml"
BYTES_MAX = 1024 * 1024
FieldPath = tuple[str, ...]


@dataclass
class SpecFile:
    """A spec as JobSpecInput wants it, and the line (from 1) that each field of it is on.

    A project that the file does not name is left out: the gateway knows where the jobs of a token go.
    """

    spec: dict[str, Any] = field(default_factory=dict)
    lines: dict[FieldPath, int] = field(default_factory=dict)

    def line_of(self, path: Sequence[str]) -> int | None:
        """The line of a field, or of the nearest thing above it."""
        for length in range(len(path), 0, -1):
            if line := self.lines.get(tuple(path[:length])):
                return line
        return None


class SpecFileRefused(SpecRefused):
    """The file can't be a spec; `file` has the lines of the problems' fields."""

    def __init__(self, problems: Sequence[Problem], file: SpecFile) -> None:
        super().__init__(problems)
        self.file = file


def read_spec(directory: Path) -> SpecFile:
    """The spec in a directory; SpecFileRefused if it is not there, is no YAML, or has another shape."""
    return read_spec_file(directory / NAME)


def read_spec_file(path: Path) -> SpecFile:
    """The spec in a file of any name, see `read_spec`."""
    try:
        text = path.read_bytes()
    except OSError as error:
        what = f"There is no {path.name} in {path.parent}" if not path.exists() else f"{path} can't be read"
        raise _refused(f"{what} ({error.strerror}): it says what to run, with the keys of JobSpecInput.") from error
    if len(text) > BYTES_MAX:
        raise _refused(f"{path} has more than 1 MiB; it is to hold the spec alone.")
    return parse_spec(text)


def parse_spec(text: bytes | str) -> SpecFile:
    """The spec in a YAML text, see `read_spec`."""
    node = root_of(text, NAME)
    if node is None:
        raise _refused(f"{NAME} is empty; it needs {', '.join(JOB_SPEC.required)}.")
    file = SpecFile()
    file.spec = read_node(node, JOB_SPEC, (), file)
    return file


def read_node(node: Node, shape: Shape, path: FieldPath, file: SpecFile) -> Any:
    """The value of a YAML node; notes its lines in `file`, and raises SpecFileRefused if it has another shape."""
    reader = _Reader(file)
    value = reader.value(node, shape, path)
    if reader.problems:
        raise SpecFileRefused(reader.problems, file)
    return value


def shown(path: Sequence[str]) -> str:
    """A field in the words of the file: ("pools", "0", "machines") as `pools[0].machines`."""
    return "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in path).removeprefix(".")


def _refused(message: str) -> SpecFileRefused:
    return SpecFileRefused([Problem("INVALID", (), message)], SpecFile())


def root_of(text: bytes | str, name: str) -> Node | None:
    """The root of the YAML in a file of that name, None if it is empty; SpecFileRefused if it is no YAML."""
    try:
        node: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise _refused(f"{name} is not YAML{line}: {error.problem or error.context}.") from error
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise _refused(f"{name} is not YAML: {str(error).splitlines()[0]}.") from error
    return node


class _Reader:
    """Walks the nodes along the shape, and collects what does not match."""

    def __init__(self, file: SpecFile) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def value(self, node: Node, shape: Shape, path: FieldPath) -> Any:
        self.file.lines.setdefault(path, node.start_mark.line + 1)
        match shape:
            case Fields():
                return self._fields(node, shape, path)
            case ListOf():
                return self._list(node, shape, path)
            case Text():
                return self._text(node, path)
            case Number():
                return self._number(node, path)

    def _refuse(self, code: str, path: FieldPath, message: str) -> None:
        self.problems.append(Problem(code, path, message))

    def _fields(self, node: Node, fields: Fields, path: FieldPath) -> dict[str, Any]:
        if not isinstance(node, MappingNode):
            what = f"`{shown(path)}`" if path else NAME
            self._refuse("INVALID", path, f"{what} must be keys and values: {', '.join(fields.all)}.")
            return {}
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inner = (*path, key)
            if inner in self.file.lines:
                self._refuse("DUPLICATE", inner, f"`{key}` is given twice; keep one.")
                continue
            self.file.lines[inner] = key_node.start_mark.line + 1
            if key not in fields.all:
                self._refuse("INVALID", inner, _unknown(key, fields.all))
            elif not _is_null(value_node):
                found[key] = self.value(value_node, fields.all[key], inner)
        for key in fields.required:
            if key not in found:
                where = f"`{shown(path)}`" if path else NAME
                self._refuse("REQUIRED", (*path, key), f"{where} needs `{key}`.")
        return found

    def _list(self, node: Node, shape: ListOf, path: FieldPath) -> list[Any]:
        if not isinstance(node, SequenceNode):
            self._refuse("INVALID", path, f"`{path[-1]}` must be a list, for example {shape.example}.")
            return []
        return [self.value(item, shape.item, (*path, str(index))) for index, item in enumerate(node.value)]

    def _text(self, node: Node, path: FieldPath) -> str:
        if isinstance(node, ScalarNode) and _kind(node) == "str":
            return str(node.value)
        if not isinstance(node, ScalarNode):
            self._refuse("INVALID", path, "This must be text.")
        else:
            self._refuse(
                "INVALID", path, f'YAML does not take {node.value} for text; put it in quotes: "{node.value}".'
            )
        return ""

    def _number(self, node: Node, path: FieldPath) -> int:
        value = yaml.safe_load(node.value) if isinstance(node, ScalarNode) and _kind(node) == "int" else None
        if isinstance(value, int):
            return value
        what = node.value if isinstance(node, ScalarNode) else "a list or keys"
        self._refuse("INVALID", path, f"This must be a whole number, not {what}.")
        return 0


def _kind(node: Node) -> str:
    return str(node.tag).rpartition(":")[2]


def _is_null(node: Node) -> bool:
    return _kind(node) == "null"


def _unknown(key: str, known: Mapping[str, Shape]) -> str:
    close = get_close_matches(key, known, n=1, cutoff=0.6) or [name for name in known if name.lower() == key.lower()]
    hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(known)}."
    return f"`{key}` is no key here: {hint}"
