"""The pages of docs/reference, from the schema and from the codes of errors."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DirectiveNode,
    GraphQLSchema,
    build_schema,
    is_enum_type,
    is_input_object_type,
    is_interface_type,
    is_introspection_type,
    is_object_type,
    is_required_argument,
    is_required_input_field,
    is_scalar_type,
    is_specified_directive,
    is_union_type,
    print_ast,
)

from starforge.api.transport.code_meanings import MEANINGS
from starforge.api.transport.codes import ErrorCode, http_status, is_retryable

OWN_COLUMN = frozenset({"deprecated", "specifiedBy", "oneOf"})
"""Directives that are told in words."""


@dataclass(frozen=True)
class Kind:
    """Types that share a page."""

    page: str
    title: str
    about: str
    includes: Callable[[Any], bool]


KINDS = (
    Kind("objects", "Objects", "What fields return.", is_object_type),
    Kind("interfaces", "Interfaces", "What several objects have in common.", is_interface_type),
    Kind("unions", "Unions", "One of several objects.", is_union_type),
    Kind("inputs", "Inputs", "What arguments take.", is_input_object_type),
    Kind("enums", "Enums", "Values may be added at any time: keep a default branch.", is_enum_type),
    Kind("scalars", "Scalars", "Single values.", is_scalar_type),
)
ROOTS = {"queries": "query_type", "mutations": "mutation_type", "subscriptions": "subscription_type"}


def pages(sdl: str) -> dict[str, str]:
    """The text of each page, by file name."""
    schema = build_schema(sdl)
    book = _Book(schema)
    written = {f"{name}.md": book.operations(name) for name, root in ROOTS.items() if getattr(schema, root)}
    written |= {f"{kind.page}.md": book.types(kind) for kind in KINDS if book.of_kind(kind)}
    written |= {"directives.md": book.directives(), "errors.md": errors_page()}
    return written | {"README.md": index(schema, written)}


def index(schema: GraphQLSchema, written: Iterable[str]) -> str:
    titles = {name: name.removesuffix(".md").capitalize() for name in written}
    lines = ["# Reference of the schema", "", "Made from the schema by `make schema`; do not edit.", ""]
    lines += [f"- [{title}]({name})" for name, title in titles.items()]
    if schema.description:
        lines += ["", schema.description]
    return _page(lines)


class _Book:
    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._roots = {getattr(schema, root) for root in ROOTS.values()}

    def of_kind(self, kind: Kind) -> list[Any]:
        return [one for _, one in sorted(self._schema.type_map.items()) if kind.includes(one) and self._has_entry(one)]

    def _has_entry(self, type_: Any) -> bool:
        return not is_introspection_type(type_) and type_ not in self._roots

    def operations(self, name: str) -> str:
        root = getattr(self._schema, ROOTS[name])
        lines = [f"# {name.capitalize()}", "", _text(root.description)]
        for field_name, field in sorted(root.fields.items()):
            lines += ["", f"## {field_name}", "", _described(field), "", f"Gives {self._link(field.type)}."]
            lines += self._table("Argument", field.args)
        return _page(lines)

    def types(self, kind: Kind) -> str:
        lines = [f"# {kind.title}", "", kind.about]
        for type_ in self.of_kind(kind):
            lines += ["", f"## {type_.name}", "", _described(type_), *self._body(type_)]
        return _page(lines)

    def _body(self, type_: Any) -> list[str]:
        if is_enum_type(type_):
            return _rows(("Value", "Meaning"), ((f"`{name}`", _described(one)) for name, one in type_.values.items()))
        if is_input_object_type(type_):
            one_of = ["", "Exactly one of the fields has to be given."] if type_.is_one_of else []
            return one_of + self._table("Field", type_.fields)
        if is_scalar_type(type_):
            url = type_.specified_by_url
            return ["", f"Specified by <{url}>."] if url else []
        return [*self._relations(type_), *(self._table("Field", type_.fields) if hasattr(type_, "fields") else [])]

    def _relations(self, type_: Any) -> list[str]:
        lines = []
        if interfaces := getattr(type_, "interfaces", ()):
            lines += ["", f"Is a {', '.join(self._link(one) for one in interfaces)}."]
        if not is_object_type(type_):
            kinds = sorted(self._schema.get_possible_types(type_), key=lambda one: one.name)
            lines += ["", f"Comes as {', '.join(self._link(one) for one in kinds) or 'nothing yet'}."]
        return lines

    def _table(self, head: str, fields: Mapping[str, Any]) -> list[str]:
        return _rows((head, "Type", "Meaning"), (self._row(name, field) for name, field in fields.items()))

    def _row(self, name: str, field: Any) -> tuple[str, str, str]:
        meaning = [_described(field) + _default(field)]
        for argument_name, argument in getattr(field, "args", {}).items():
            link = self._link(argument.type)
            meaning.append(f"• `{argument_name}` {link}: {_described(argument)}{_default(argument)}")
        return f"`{name}`", self._link(field.type), "<br>".join(meaning)

    def _link(self, type_: Any) -> str:
        """The type as a document writes it, its name a link."""
        written = str(type_)
        name = written.strip("[]!")
        named = self._schema.type_map[name]
        page = next(kind.page for kind in KINDS if kind.includes(named))
        before, after = written.split(name)
        return f"{_escape_brackets(before)}[{name}]({page}.md#{name.lower()}){_escape_brackets(after)}"

    def directives(self) -> str:
        lines = ["# Directives", "", "What a document may carry, and what the schema's text says of its parts."]
        for directive in sorted(self._schema.directives, key=lambda one: one.name):
            standard = ["Part of GraphQL itself."] if is_specified_directive(directive) else []
            words = " ".join([*filter(None, [_text(directive.description)]), *standard])
            places = ", ".join(f"`{place.name}`" for place in directive.locations)
            lines += ["", f"## @{directive.name}", "", words, "", f"Goes on {places}."]
            lines += self._table("Argument", directive.args)
        return _page(lines)


def errors_page() -> str:
    lines = ["# Errors", "", *ERRORS_ABOUT.strip().splitlines()]
    heads = ("Code", "Meaning", "HTTP status", "Retryable", "What to do")
    return _page(lines + _rows(heads, (_error_row(code) for code in ErrorCode)))


def _error_row(code: ErrorCode) -> tuple[str, ...]:
    meaning = MEANINGS[code]
    retryable = "yes" if is_retryable(code) else "no"
    return f"`{code}`", meaning.sentence, str(http_status(code)), retryable, meaning.advice


ERRORS_ABOUT = """
What the caller can put right in a mutation comes as `userErrors` of its payload, see
[UserErrorCode](enums.md#usererrorcode). Everything else is one of `errors`:

```json
{
  "message": "…",
  "path": ["job"],
  "extensions": {"code": "THROTTLED", "id": "4f0c…", "retryable": true, "retryAfterSeconds": 3}
}
```

- `code` is one of those below; more may be added, so treat one that you do not know by its `retryable`.
- `id` is this error's own: quote it when you ask for help.
- `retryable` says whether the same request may succeed later, and has the last word over the table.
- `retryAfterSeconds`, where it is, says when; the header `Retry-After` says the same.
- `cursor`, where it is, resumes the subscription that ended.

An error at a field has a `path`, and the rest of the answer is good; its HTTP status is 200. The status in the table
is that of an answer without `data`. A client that accepts `application/json` only, and not
`application/graphql-response+json`, gets 200 for the errors of a well-formed request. On a WebSocket such an answer is
a message `error` for the operation's id, and no other operation ends by it.
"""


def _rows(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    body = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *body] if body else []


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _described(part: Any) -> str:
    """Description, what the schema's directives say of it, and whether it is going."""
    said = [f"`{print_ast(node)}`" for node in _directives(part) if node.name.value not in OWN_COLUMN]
    reason = getattr(part, "deprecation_reason", None)
    going = [f"**Deprecated:** {reason}"] if reason else []
    return " ".join([_text(part.description), *said, *going])


def _directives(part: Any) -> tuple[DirectiveNode, ...]:
    return tuple(part.ast_node.directives or ()) if part.ast_node else ()


def _default(part: Any) -> str:
    node = getattr(part.ast_node, "default_value", None)
    if node is not None and print_ast(node) != "null":
        return f" By default `{print_ast(node)}`."
    if is_input(part) and (is_required_argument(part) or is_required_input_field(part)):
        return " Required."
    return ""


def is_input(part: Any) -> bool:
    """Whether it is an argument or a field of an input, which a document may have to give."""
    return hasattr(part, "default_value")


def _text(description: str | None) -> str:
    return " ".join((description or "").split())


def _escape_brackets(text: str) -> str:
    return text.replace("[", "\\[").replace("]", "\\]")


def _page(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
