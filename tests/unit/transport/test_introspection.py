import asyncio
import threading
from typing import Any

import pytest
import strawberry
from graphql import execute_sync, get_introspection_query, parse

from starforge.api.schema import make_schema
from starforge.api.transport import introspection
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.documents import check_document
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.introspection import FIELDS_BETWEEN_RESTS
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.prices import Prices
from starforge.api.transport.schema import GatewaySchema

LIMITS = TransportLimits()
WHOLE = get_introspection_query()
NESTED = "__schema {types {fields {type {fields {name type {name}}}}}}"
GATEWAY = make_schema()
PRICES = Prices(GATEWAY._schema)


@strawberry.type
class Query:
    @strawberry.field
    def name(self) -> str:
        return threading.current_thread().name


@pytest.fixture
def schema() -> GatewaySchema:
    return GatewaySchema(query=Query)


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread of each rest."""
    taken: list[str] = []
    monkeypatch.setattr(introspection, "rest", lambda: taken.append(threading.current_thread().name))
    return taken


def ask(schema: GatewaySchema, text: str, **variables: object) -> Any:
    document = check_document(schema, text, LIMITS)
    return asyncio.run(schema.execute(document.text, variables))


def test_it_is_answered_as_graphql_core_answers_it() -> None:
    result = ask(GATEWAY, WHOLE)
    assert result.errors is None
    assert result.data == execute_sync(GATEWAY._schema, parse(WHOLE)).data


def test_it_runs_in_a_thread_and_rests_there(rests: list[str]) -> None:
    result = ask(GATEWAY, get_introspection_query(descriptions=False))
    fields = _fields(result.data)
    assert len(rests) == fields // FIELDS_BETWEEN_RESTS
    assert len(rests) > 20
    assert {name.rpartition("_")[0] for name in rests} == {"introspection"}


def _fields(data: Any) -> int:
    if isinstance(data, dict):
        return len(data) + sum(_fields(value) for value in data.values())
    return sum(_fields(item) for item in data) if isinstance(data, list) else 0


def test_an_answer_is_kept_for_its_document_and_variables(rests: list[str]) -> None:
    text = "query($all: Boolean!) {__schema {types {fields(includeDeprecated: $all) {name args {name}}}}}"
    document = check_document(GATEWAY, text, LIMITS)

    async def asked() -> list[int]:
        counts = []
        for wanted in (True, True, False, True, False):
            await GATEWAY.execute(document.text, {"all": wanted})
            counts.append(len(rests))
        return counts

    counts = asyncio.run(asked())
    assert 0 < counts[0] == counts[1] < counts[2] == counts[3] == counts[4]


def test_wrong_variables_are_told_and_not_kept(schema: GatewaySchema) -> None:
    text = "query($all: Boolean!) {__schema {types {fields(includeDeprecated: $all) {name}}}}"
    assert "to be provided" in ask(schema, text).errors[0].message
    assert ask(schema, text, all=True).errors is None


def test_the_operation_that_is_named_is_answered(schema: GatewaySchema) -> None:
    document = check_document(schema, "query A {__schema {queryType {name}}} query B {__typename}", LIMITS)
    assert [document.text.introspects(name) for name in ("A", "B")] == [True, False]
    result = asyncio.run(schema.execute(document.text, operation_name="A"))
    assert result.data == {"__schema": {"queryType": {"name": "Query"}}}


@pytest.mark.parametrize(
    "text",
    [
        "{name __schema {queryType {name}}}",
        '{name t: __type(name: "Query") {name}}',
        "{...F name} fragment F on Query {... {__schema {queryType {name}}}}",
    ],
)
def test_it_is_not_mixed_with_anything_else(schema: GatewaySchema, text: str) -> None:
    with pytest.raises(RequestRefused, match="in an operation with nothing else") as refused:
        check_document(schema, text, LIMITS)
    assert refused.value.code == ErrorCode.DOCUMENT_TOO_EXPENSIVE


def test_the_name_of_the_root_may_be_asked_for_with_it(schema: GatewaySchema) -> None:
    assert ask(schema, "{__typename __schema {queryType {name}}}").data["__typename"] == "Query"
    assert ask(schema, "{__typename}").data == {"__typename": "Query"}


def test_the_whole_schema_is_affordable_and_many_times_the_whole_is_not() -> None:
    whole = check_document(GATEWAY, WHOLE, LIMITS, PRICES)
    assert whole.bounded_cost(None, None) < LIMITS.document_cost / 2
    often = check_document(GATEWAY, "{" + " ".join(f"a{n}: {NESTED}" for n in range(20)) + "}", LIMITS, PRICES)
    with pytest.raises(RequestRefused, match="points, and may cost"):
        often.bounded_cost(None, None)


def test_no_field_of_ours_leads_back_to_where_the_schema_can_be_asked_for() -> None:
    returned = {price.type_name for price in PRICES._prices.values()}
    assert "Job" in returned
    assert "Query" not in returned
