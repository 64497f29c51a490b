"""What dashboards and scripts send fits the limits with room to spare; what each costs is printed (pytest -s)."""

import pytest

from starforge.api.schema import make_schema
from starforge.api.transport.documents import check_document
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.prices import Prices
from tests.operations import Operation, operations, our_schema

LIMITS = TransportLimits()
SCHEMA = make_schema()
PRICES = Prices(SCHEMA._schema)
SENT = [one for one in operations(our_schema()) if one.document]


def test_there_are_many() -> None:
    assert len(SENT) > 15


@pytest.mark.parametrize("operation", SENT, ids=[one.name for one in SENT])
def test_it_fits(operation: Operation) -> None:
    document = check_document(SCHEMA, operation.document or "", LIMITS, PRICES)
    largest = dict.fromkeys(operation.variables, 100)
    cost = document.cost(operation.name, largest)
    print(f"{cost:6} points: {operation.name}")  # noqa: T201
    assert 1 <= cost <= LIMITS.document_cost / 2
