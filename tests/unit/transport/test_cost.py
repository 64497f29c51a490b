"""The cost of documents, by hand and against an oracle that is slow and simple."""

from collections.abc import Mapping
from typing import Any

import pytest
import strawberry
from graphql import (
    ArgumentNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    VariableNode,
    parse,
)
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.directives import cost, list_size, page_size, sized_by
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.cost import Evaluation
from starforge.api.transport.costs import Costs
from starforge.api.transport.documents import check_document
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.measure import measure
from starforge.api.transport.prices import Prices
from starforge.api.transport.schema import GatewaySchema


@strawberry.type(directives=[cost(3)])
class Dear:
    id: int


@strawberry.type(directives=[cost(0)])
class Edge:
    @strawberry.field
    def node(self) -> "Item":
        return Item(id=1)


@strawberry.type
class Page:
    total: int = strawberry.field(default=1, directives=[cost(5)])

    @strawberry.field
    def edges(self) -> list[Edge]:
        return []

    @strawberry.field
    def nodes(self) -> list["Item"]:
        return []


@strawberry.type
class Payload:
    @strawberry.field
    def outcomes(self) -> list[Dear]:
        return []


@strawberry.type
class Item:
    id: int

    @strawberry.field(directives=[list_size(4)])
    def dear(self) -> list[Dear]:
        return []

    @strawberry.field(directives=[page_size()])
    def page(self, first: int | None = None, last: int | None = None) -> Page:
        return Page()

    @strawberry.field(directives=[cost(10), sized_by("limit", field="outcomes")])
    def act(self, limit: int = 7) -> Payload:
        return Payload()


@strawberry.type
class Query(Item): ...


SCHEMA = GatewaySchema(query=Query)
PRICES = Prices(SCHEMA._schema)
LIMITS = TransportLimits()


def costs(text: str) -> Costs:
    parsed = parse(text)
    nodes = [node for node in parsed.definitions if isinstance(node, OperationDefinitionNode)]
    return Costs(nodes, measure(parsed, SCHEMA._schema, PRICES).operations)


def price(text: str, name: str | None = None, **variables: object) -> int:
    return costs(text).of(name, variables)


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("{__typename}", 1),
        ("{id}", 1),
        ("{dear {id}}", 1 + 4 * 3),
        ("{page(first: 10) {__typename}}", 1 + 1),
        ("{page(first: 10) {total}}", 1 + 1 + 5),
        ("{page(first: 10) {nodes {id}}}", 1 + 1 + 10),
        ("{page(first: 10) {edges {node {id}}}}", 1 + 1 + 10 * (0 + 1)),
        ("{page(first: 10) {nodes {dear {id}}}}", 1 + 1 + 10 * (1 + 4 * 3)),
        ("{page(last: 3) {nodes {page(first: 2) {nodes {id}}}}}", 1 + 1 + 3 * (1 + 1 + 2)),
        ("{page(first: 2, last: 9) {nodes {id}}}", 1 + 1 + 9),
        ("{page {nodes {id}}}", 1 + 1 + 1),
        ("{act {outcomes {id}}}", 1 + 10 + 1 + 7 * 3),
        ("{act(limit: 2) {outcomes {id}}}", 1 + 10 + 1 + 2 * 3),
        ("{a: dear {id} b: dear {id}}", 1 + 2 * 12),
        ("{...F ...F} fragment F on Query {dear {id}}", 1 + 2 * 12),
        ("{page(first: 10) {...F}} fragment F on Page {nodes {id} total}", 1 + 1 + 10 + 5),
        ("{page(first: 10) {... {... on Page {nodes {id}}}}}", 1 + 1 + 10),
        ("{page(first: -1) {nodes {id}}}", 1 + 1),
        ("{page(first: 99999999999999999999) {nodes {id}}}", 1 + 1 + 2**31 - 1),
        ("{page(first: " + "9" * 9_000 + ") {nodes {id}}}", 1 + 1 + 2**31 - 1),
        ('{page(first: "10") {nodes {id}}}', 1 + 1 + 1),
        ("{page(first: null) {nodes {id}}}", 1 + 1 + 1),
        ("{__schema {queryType {name fields {name}}}}", 1 + 5),
    ],
)
def test_cost(text: str, points: int) -> None:
    assert price(text) == points


@pytest.mark.parametrize(
    ("given", "items"),
    [
        ({}, 20),
        ({"n": 5}, 5),
        ({"n": 5.0}, 5),
        ({"n": None}, 1),
        ({"n": "5"}, 1),
        ({"n": True}, 1),
        ({"n": [5]}, 1),
        ({"n": 5.5}, 1),
        ({"n": float("nan")}, 1),
        ({"n": -5}, 0),
        ({"n": 10**400}, 2**31 - 1),
    ],
)
def test_variables_that_say_how_many_never_break_it(given: Mapping[str, Any], items: int) -> None:
    text = "query($n: Int = 20) {page(first: $n) {nodes {id}}}"
    assert price(text, **given) == 2 + items
    assert price("query($n: Int) {act(limit: $n) {outcomes {id}}}", n=2) == 12 + 6
    assert price("query($n: Int) {act(limit: $n) {outcomes {id}}}") == 12 + 21, "the schema's default"


def test_the_operation_that_is_named_is_priced() -> None:
    text = "query A {...F} query B($n: Int = 3) {...F} fragment F on Query {page(first: $n) {nodes {id}}}"
    assert [price(text, name) for name in ("A", "B", "C", None)] == [3, 5, 0, 0]


def test_a_cost_is_kept_for_the_sizes_it_was_asked_with() -> None:
    asked = costs("query($n: Int, $other: Int) {page(first: $n) {nodes {id}} dear {id}}")
    assert [asked.of(None, {"n": n, "other": n}) for n in (*range(100), *range(100))] == [
        14 + n for n in range(100)
    ] * 2
    assert len(asked._known) <= 64


def test_a_fragment_is_evaluated_once_however_often_it_is_spread() -> None:
    levels = 60
    fragments = "".join(f"fragment F{n} on Query {{...F{n + 1} ...F{n + 1}}} " for n in range(levels))
    text = f"{{...F0}} {fragments} fragment F{levels} on Query {{dear {{id}}}}"
    evaluation = Evaluation({})
    parsed = measure(parse(text), SCHEMA._schema, PRICES)
    assert evaluation.cost(parsed.operations[None]) == 12 * 2**levels
    assert len(evaluation._known) < levels + 5


def test_more_than_a_document_may_cost_is_refused_with_both_numbers() -> None:
    document = check_document(SCHEMA, "query($n: Int) {page(first: $n) {nodes {id}}}", LIMITS)
    assert document.bounded_cost(None, {"n": LIMITS.document_cost - 2}) == LIMITS.document_cost
    with pytest.raises(RequestRefused, match=f"costs {LIMITS.document_cost + 1} points, and may cost") as refused:
        document.bounded_cost(None, {"n": LIMITS.document_cost - 1})
    assert refused.value.code == ErrorCode.DOCUMENT_TOO_EXPENSIVE


# The oracle: walks every spread again, and looks everything up in these tables.

_EACH = {"Item": 1, "Page": 1, "Edge": 0, "Dear": 3, "Payload": 1}
_RETURNS = {"dear": "Dear", "page": "Page", "act": "Payload", "node": "Item", "nodes": "Item", "edges": "Edge"}
_RETURNS["outcomes"] = "Dear"
_LEAVES = {"id": 0, "total": 5}
_SIZED = {"nodes", "edges", "outcomes"}


class Oracle:
    def __init__(self, document: DocumentNode, variables: Mapping[str, int]) -> None:
        nodes = document.definitions
        self.variables = variables
        self.fragments = {node.name.value: node for node in nodes if isinstance(node, FragmentDefinitionNode)}
        operation = next(node for node in nodes if isinstance(node, OperationDefinitionNode))
        self.cost = 1 + self.walk(operation.selection_set, 1)

    def walk(self, selections: SelectionSetNode, items: int) -> int:
        return sum(self.node(node, items) for node in selections.selections)

    def node(self, node: SelectionNode, items: int) -> int:
        if isinstance(node, FieldNode):
            return self.field(node, items)
        if isinstance(node, FragmentSpreadNode):
            return self.walk(self.fragments[node.name.value].selection_set, items)
        assert isinstance(node, InlineFragmentNode)
        return self.walk(node.selection_set, items)

    def field(self, node: FieldNode, items: int) -> int:
        name = node.name.value
        if name in _LEAVES:
            return _LEAVES[name]
        assert node.selection_set
        sizes = [size for one in node.arguments or () if (size := self.size(one)) is not None]
        inside = max(sizes, default=7 if name == "act" else 1)
        one = _EACH[_RETURNS[name]] + self.walk(node.selection_set, inside)
        return (10 if name == "act" else 0) + one * (items if name in _SIZED else 4 if name == "dear" else 1)

    def size(self, argument: ArgumentNode) -> int | None:
        value = argument.value
        if isinstance(value, VariableNode):
            return self.variables.get(value.name.value)
        assert isinstance(value, IntValueNode)
        return int(value.value)


_NUMBERS = st.sampled_from(["0", "1", "3", "$n", "$m"])
_FRAGMENTS = 3


@st.composite
def selections(draw: st.DrawFn, type_: str, deep: int, spreads: int) -> str:
    """Of an object of `type_`; only fragments from number `spreads` on are spread, so that there is no cycle."""
    leaves = {"Item": ["id"], "Page": ["total"], "Dear": ["id"]}.get(type_, ["__typename"])
    parts = [draw(st.sampled_from(leaves))] if leaves != ["__typename"] else []
    inner = {"Item": ["dear", "page", "act"], "Page": ["nodes", "edges"], "Edge": ["node"], "Payload": ["outcomes"]}
    for _ in range(draw(st.integers(0, 3)) if deep else 0):
        if type_ in ("Item", "Page") and spreads < _FRAGMENTS and draw(st.booleans()):
            parts.append(f"...{type_}{draw(st.integers(spreads, _FRAGMENTS - 1))}")
        elif draw(st.integers(0, 4)) == 0:
            parts.append(f"... {{{draw(selections(type_, deep - 1, spreads))}}}")
        elif type_ in inner:
            field = draw(st.sampled_from(inner[type_]))
            below = draw(selections(_RETURNS[field], deep - 1, spreads))
            parts.append(f"{field}{draw(arguments(field))} {{{below}}}")
    return " ".join(parts) or "... {id}" if type_ in ("Item", "Dear") else " ".join(parts) or draw(end(type_))


@st.composite
def arguments(draw: st.DrawFn, field: str) -> str:
    names = {"page": ["first", "last"], "act": ["limit"]}.get(field, [])
    chosen = [f"{name}: {draw(_NUMBERS)}" for name in names if draw(st.booleans())]
    return f"({', '.join(chosen)})" if chosen else ""


def end(type_: str) -> st.SearchStrategy[str]:
    return st.just({"Page": "total", "Edge": "node {id}", "Payload": "outcomes {id}"}[type_])


@st.composite
def documents(draw: st.DrawFn) -> str:
    fragments = [
        f"fragment {type_}{n} on {type_} {{{draw(selections(type_, 3, n + 1))}}}"
        for n in range(_FRAGMENTS)
        for type_ in ("Item", "Page")
    ]
    body = draw(selections("Item", 4, 0))
    return f"query($n: Int, $m: Int) {{page(first: 1) {{nodes {{{body}}}}}}} {' '.join(fragments)}"


@given(documents(), st.dictionaries(st.sampled_from(["n", "m"]), st.integers(0, 50)))
def test_the_cost_is_that_of_the_slow_oracle(text: str, variables: dict[str, int]) -> None:
    assert costs(text).of(None, variables) == Oracle(parse(text), variables).cost
