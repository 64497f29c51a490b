"""What a hostile document may take from the event loop, in steps that are counted, not in time that is measured."""

from collections.abc import Callable

import pytest
import strawberry
from graphql import DocumentNode, Node, Visitor, parse, visit

from starforge.api.transport import validation
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.documents import check_document
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.validation import NODES_BETWEEN_RESTS, TooManyComparisons, validation_errors

LIMITS = TransportLimits()


@strawberry.type
class Query:
    name: str = "x"

    @strawberry.field
    def me(self, a: int = 0, b: list[int] | None = None) -> "Query":
        return self


SCHEMA = strawberry.Schema(Query)


class Counting(Visitor):
    nodes = 0

    def enter(self, *_: object) -> None:
        self.nodes += 1


def nodes_in(document: Node) -> int:
    counting = Counting()
    visit(document, counting)
    return counting.nodes


def as_large_as_may_be(make: Callable[[int], str]) -> str:
    """The text for the largest number that is within the limit of tokens."""
    tokens = [parse(make(n), no_location=True).token_count for n in (1, 2)]
    return make(1 + (LIMITS.document_tokens - tokens[0]) // (tokens[1] - tokens[0]))


HOSTILE: dict[str, Callable[[int], str]] = {
    "one leaf again and again": lambda n: "{" + "name " * n + "}",
    "one object again and again": lambda n: "{" + "me {name} " * n + "}",
    "objects in objects": lambda n: "{" + "me {me {name name} me {name}} " * n + "}",
    "one object with arguments": lambda n: "{" + "me(a: 1, b: [1, 2]) {name} " * n + "}",
    "many fragments with one field": lambda n: (
        "{"
        + " ".join(f"...F{i}" for i in range(n))
        + "}"
        + " ".join(f"fragment F{i} on Query {{name}}" for i in range(n))
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_fields_that_overlap_too_often_are_refused_before_they_are_all_compared(name: str) -> None:
    text = as_large_as_may_be(HOSTILE[name])
    with pytest.raises(TooManyComparisons):
        validation_errors(SCHEMA._schema, parse(text))
    with pytest.raises(RequestRefused, match="same fields too often") as refused:
        check_document(SCHEMA, text, LIMITS)
    assert refused.value.code == ErrorCode.DOCUMENT_TOO_EXPENSIVE


def test_many_parts_of_a_page_that_ask_for_the_same_fields_are_fine() -> None:
    parts = range(50)
    spreads = " ".join(f"...F{n}" for n in parts)
    text = "{me {" + spreads + "}}" + " ".join(f"fragment F{n} on Query {{name __typename}}" for n in parts)
    assert validation_errors(SCHEMA._schema, parse(text)) == []


@pytest.mark.parametrize(
    "document",
    [
        parse("{me(b: [" + "1 " * 900 + "]) {name}}"),
        parse("".join(f"query Q{n} {{name}} " for n in range(150))),
        parse("".join(f"query Q{n} {{...F}} " for n in range(120)) + "fragment F on Query {name}"),
    ],
)
def test_it_rests_all_along(document: DocumentNode, monkeypatch: pytest.MonkeyPatch) -> None:
    rests = 0

    def rest() -> None:
        nonlocal rests
        rests += 1

    monkeypatch.setattr(validation, "rest", rest)
    assert validation_errors(SCHEMA._schema, document) == []
    assert rests == nodes_in(document) // NODES_BETWEEN_RESTS
    assert rests > 10
