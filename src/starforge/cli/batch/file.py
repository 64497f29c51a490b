"""Reads a batch file into the jobs that it stands for, or into every problem that it has, each with its line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from starforge.cli.batch.matrix import INDEX, NAME, Parameters, UnknownParameter, combinations, fill
from starforge.cli.shapes import JOB_SPEC, Fields, Text
from starforge.cli.specfile import (
    BYTES_MAX,
    FieldPath,
    SpecFile,
    SpecFileRefused,
    read_node,
    read_spec,
    root_of,
)
from starforge.cli.specfile import NAME as SPEC_NAME
from starforge.domain.errors import Problem

ITEMS_MAX = 10_000
BATCH_LABEL = "batch"
_KEYS = ("batch", "code", "spec", "matrix", "include", "exclude")
_OVERRIDES = Fields({}, JOB_SPEC.all)


@dataclass(frozen=True)
class Item:
    """One job of a batch: its parameters, and the spec with them in it."""

    index: int
    parameters: Parameters
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Batch:
    """`name` is the one that the file gives itself, if it does; `code` is the directory to send."""

    path: Path
    name: str | None
    code: Path
    items: Sequence[Item]


@dataclass
class _Draft:
    file: SpecFile = field(default_factory=SpecFile)
    problems: list[Problem] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)

    def refuse(self, path: FieldPath, message: str, code: str = "INVALID") -> None:
        self.problems.append(Problem(code, path, message))

    def demand_none(self) -> None:
        if self.problems:
            raise SpecFileRefused(self.problems, self.file)


def read_batch(path: Path, code: Path | None = None) -> Batch:
    """The batch in a file, of the code in `code` or where the file says; SpecFileRefused with every problem."""
    draft = _Draft()
    try:
        text = path.read_bytes()
    except OSError as error:
        raise SpecFileRefused(
            [Problem("INVALID", (), f"{path} can't be read: {error.strerror}.")], draft.file
        ) from error
    if len(text) > BYTES_MAX:
        raise SpecFileRefused([Problem("TOO_LARGE", (), f"{path} has more than 1 MiB.")], draft.file)
    _read_root(draft, root_of(text, path.name), path.name)
    draft.demand_none()
    directory = code or path.parent / draft.found.get("code", ".")
    base = _base(draft, directory)
    draft.demand_none()
    items = _items(draft, base)
    draft.demand_none()
    return Batch(path, draft.found.get("batch"), directory, items)


def _read_root(draft: _Draft, node: Node | None, name: str) -> None:
    if not isinstance(node, MappingNode):
        return draft.refuse((), f"{name} must be keys and values: {', '.join(_KEYS)}.")
    for key_node, value in node.value:
        key = str(key_node.value)
        draft.file.lines[(key,)] = key_node.start_mark.line + 1
        if key not in _KEYS:
            draft.refuse((key,), f"`{key}` is no key here: there are {', '.join(_KEYS)}.")
        else:
            draft.found[key] = _READ[key](draft, value, (key,))
    return None


def _spec(draft: _Draft, node: Node, path: FieldPath) -> Any:
    try:
        return read_node(node, _OVERRIDES, path, draft.file)
    except SpecFileRefused as refused:
        draft.problems += refused.problems
        return {}


def _text(draft: _Draft, node: Node, path: FieldPath) -> str:
    try:
        return str(read_node(node, Text(), path, draft.file))
    except SpecFileRefused as refused:
        draft.problems += refused.problems
        return ""


def _matrix(draft: _Draft, node: Node, path: FieldPath) -> dict[str, list[str]]:
    """Lists of values by name; values are taken as they are written, so that 1e-3 stays 1e-3."""
    if not isinstance(node, MappingNode):
        draft.refuse(path, "`matrix` must be names with lists of values, for example {lr: [0.1, 0.01]}.")
        return {}
    found = {}
    for key_node, value in node.value:
        name = _parameter(draft, key_node, path)
        values = value.value if isinstance(value, SequenceNode) else []
        if not values or not all(isinstance(one, ScalarNode) for one in values):
            draft.refuse((*path, name), f"`{name}` must be a list of values, for example [0.1, 0.01].")
        elif name in found:
            draft.refuse((*path, name), f"`{name}` is given twice; keep one.", "DUPLICATE")
        found[name] = [str(one.value) for one in values if isinstance(one, ScalarNode)]
    return found


def _parameter(draft: _Draft, node: Node, path: FieldPath) -> str:
    name = str(node.value)
    draft.file.lines[(*path, name)] = node.start_mark.line + 1
    if not NAME.fullmatch(name) or name == INDEX:
        draft.refuse((*path, name), f"`{name}` can't be a parameter: letters, digits and _, and not `{INDEX}`.")
    return name


def _list(draft: _Draft, node: Node, path: FieldPath) -> list[dict[str, str]]:
    if not isinstance(node, SequenceNode):
        draft.refuse(path, f"`{path[-1]}` must be a list, for example [{{lr: 0.1, seed: 1}}].")
        return []
    return [_combination(draft, one, (*path, str(index))) for index, one in enumerate(node.value)]


def _combination(draft: _Draft, node: Node, path: FieldPath) -> dict[str, str]:
    draft.file.lines[path] = node.start_mark.line + 1
    pairs = node.value if isinstance(node, MappingNode) else []
    if not pairs or not all(isinstance(value, ScalarNode) for _, value in pairs):
        draft.refuse(path, "This must be names with one value each, for example {lr: 0.1, seed: 1}.")
        return {}
    return {_parameter(draft, key, path): str(value.value) for key, value in pairs}


_READ: Mapping[str, Callable[[_Draft, Node, FieldPath], Any]] = {
    "batch": _text, "code": _text, "spec": _spec, "matrix": _matrix, "include": _list, "exclude": _list,
}  # fmt: skip


def _base(draft: _Draft, directory: Path) -> dict[str, Any]:
    """The spec of the directory with what the file says put over it: env by name, labels by key, others as a whole."""
    over = draft.found.get("spec", {})
    if not directory.is_dir():
        draft.refuse(("code",), f"There is no directory {directory} with the code.")
        return {}
    base = read_spec(directory).spec if (directory / SPEC_NAME).exists() else {}
    merged = {**base, **over}
    for name, key in (("env", "name"), ("labels", "key")):
        rows = [*base.get(name, ()), *over.get(name, ())]
        if rows:
            merged[name] = list({row[key]: row for row in rows}.values())
    for name in JOB_SPEC.required:
        if name not in merged:
            draft.refuse(("spec",), f"There is no {SPEC_NAME} in {directory}, so `spec` needs `{name}`.", "REQUIRED")
    if any(label["key"] == BATCH_LABEL for label in merged.get("labels", ())):
        draft.refuse(("spec", "labels"), f"The label `{BATCH_LABEL}` is the batch's own; use `batch:`.", "RESERVED")
    return merged


def _items(draft: _Draft, base: Mapping[str, Any]) -> list[Item]:
    matrix, include, exclude = (draft.found.get(name, {}) for name in ("matrix", "include", "exclude"))
    names = set(matrix) or set(include[0] if include else ())
    for rows, kind, fits in ((include, "include", names.__eq__), (exclude, "exclude", names.issuperset)):
        for index, one in enumerate(rows):
            if not fits(set(one)):
                which = "every parameter" if kind == "include" else "parameters"
                draft.refuse((kind, str(index)), f"This must give {which} of {', '.join(sorted(names))}, and no other.")
    draft.demand_none()
    all_of_them = list(combinations(matrix, include, list(exclude)))
    if not 1 <= len(all_of_them) <= ITEMS_MAX:
        draft.refuse(("matrix",), f"A batch has 1 to {ITEMS_MAX:,} jobs, and this one has {len(all_of_them):,}.")
        return []
    return _filled(draft, base, all_of_them)


def _filled(draft: _Draft, base: Mapping[str, Any], rows: Sequence[Parameters]) -> list[Item]:
    items = []
    for index, parameters in enumerate(rows):
        try:
            spec = fill(base, {**parameters, INDEX: str(index)})
        except UnknownParameter as unknown:
            known = ", ".join([*parameters, INDEX])
            message = f"`{{{unknown}}}` is no parameter: there are {known}. Write {{{{ and }}}} for braces."
            draft.refuse(("spec",), message)
            return []
        items.append(Item(index, parameters, spec))
    return items
