import pytest
import strawberry
from graphql import get_introspection_query, parse

from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.measure import Measured, Size, measure
from starforge.api.transport.prices import Prices


@strawberry.type
class Query:
    a: int = 1


SCHEMA = strawberry.Schema(Query)._schema


def measured(document: str) -> Measured:
    return measure(parse(document), SCHEMA, Prices(SCHEMA))


@pytest.mark.parametrize(
    ("document", "size"),
    [
        ("{a}", Size(depth=1, fields=1, aliases=0)),
        ("{a {b {c}} d}", Size(depth=3, fields=4, aliases=0)),
        ("{x: a {y: b}}", Size(depth=2, fields=2, aliases=2)),
        ("{a {... on T {b} ... {c}}}", Size(depth=2, fields=3, aliases=0)),
        ("{a {...F} ...F} fragment F on T {x: b {c}}", Size(depth=3, fields=5, aliases=2)),
        ("query A {a} query B {x: b {c}}", Size(depth=2, fields=2, aliases=1)),
        ("{a {...Unknown}}", Size(depth=1, fields=1, aliases=0)),
        ("{...F} fragment F on T {a {...F}}", Size(depth=1, fields=1, aliases=0)),
        ("{...F} fragment F on T {a ...G} fragment G on T {b ...F}", Size(depth=1, fields=2, aliases=0)),
        ("mutation {a} subscription {b}", Size(depth=1, fields=1, aliases=0)),
        ("fragment F on T {a}", Size()),
    ],
)
def test_size(document: str, size: Size) -> None:
    assert measured(document).size == size


def test_a_fragment_is_walked_once_however_often_it_is_spread() -> None:
    levels = 60
    fragments = "".join(f"fragment F{n} on T {{...F{n + 1} ...F{n + 1}}} " for n in range(levels))
    found = measured(f"{{...F0}} {fragments} fragment F{levels} on T {{x: a}}")
    assert found.size == Size(depth=1, fields=2**levels, aliases=2**levels)
    assert found.visits == 1 + 2 * levels + 1


def test_introspection_fits_the_limits() -> None:
    size = measured(get_introspection_query(input_value_deprecation=True, directive_is_repeatable=True)).size
    limits = TransportLimits()
    assert size.depth <= limits.document_depth
    assert size.fields <= limits.document_fields
