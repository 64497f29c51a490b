import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import strawberry
from graphql import DocumentNode, OperationType, parse

from starforge.api.transport import documents
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.documents import Document, Documents, DocumentText, check_document
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.prices import Prices
from starforge.api.transport.schema import GatewaySchema

LIMITS = TransportLimits()


@strawberry.type
class Query:
    name: str = "x"

    @strawberry.field
    def me(self) -> "Query":
        return Query()


SCHEMA = GatewaySchema(query=Query)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were checked, in order."""
    texts: list[str] = []

    def check(schema: strawberry.Schema, text: str, limits: TransportLimits, prices: Prices) -> Document:
        texts.append(text)
        return check_document(schema, text, limits, prices)

    monkeypatch.setattr(documents, "check_document", check)
    return texts


def test_many_that_ask_for_one_text_wait_for_one_check(checked: list[str]) -> None:
    async def ask() -> None:
        known = Documents(SCHEMA, LIMITS)
        first = await asyncio.gather(*(known.prepare("{name}") for _ in range(50)))
        assert {id(document) for document in (*first, await known.prepare("{name}"))} == {id(first[0])}

    asyncio.run(ask())
    assert checked == ["{name}"]


def test_the_least_recently_used_goes_first(checked: list[str]) -> None:
    async def ask() -> None:
        known = Documents(SCHEMA, replace(LIMITS, cached_documents=2))
        for text in ("{name}", "{me {name}}", "{name}", "{n: name}", "{name}", "{me {name}}"):
            await known.prepare(text)

    asyncio.run(ask())
    assert checked == ["{name}", "{me {name}}", "{n: name}", "{me {name}}"]


def test_documents_are_kept_up_to_a_number_of_tokens(checked: list[str]) -> None:
    small, large, long = "{name}", "{" + "name " * 40 + "}", "{name" + " " * 20_000 + "}"

    async def ask() -> None:
        known = Documents(SCHEMA, replace(LIMITS, cached_tokens=50))
        for text in (small, large, small, long, small, large):
            await known.prepare(text)

    asyncio.run(ask())
    assert checked == [small, large, long, small, large]


def test_a_refusal_reaches_everybody_who_asked_and_is_not_kept(checked: list[str]) -> None:
    async def ask() -> None:
        known = Documents(SCHEMA, LIMITS)
        outcomes = await asyncio.gather(*(known.prepare("{nope}") for _ in range(3)), return_exceptions=True)
        assert {getattr(outcome, "code", None) for outcome in outcomes} == {ErrorCode.GRAPHQL_VALIDATION_FAILED}
        with pytest.raises(RequestRefused):
            await known.prepare("{nope}")

    asyncio.run(ask())
    assert checked == ["{nope}", "{nope}"]


def test_who_stops_waiting_does_not_stop_the_check(checked: list[str]) -> None:
    async def ask() -> None:
        known = Documents(SCHEMA, LIMITS)
        impatient = asyncio.create_task(known.prepare("{name}"))
        patient = asyncio.create_task(known.prepare("{name}"))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).text == "{name}"

    asyncio.run(ask())
    assert checked == ["{name}"]


def test_strawberry_runs_the_prepared_document_without_parsing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("it was parsed or validated again")

    document = check_document(SCHEMA, "{me {name}}", LIMITS)
    monkeypatch.setattr("strawberry.schema.schema.parse", refuse)
    monkeypatch.setattr("strawberry.schema.schema.validate_document", refuse)
    assert isinstance(document.text, DocumentText)
    result = asyncio.run(SCHEMA.execute(document.text))
    assert (result.data, result.errors) == ({"me": {"name": "x"}}, None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", ErrorCode.GRAPHQL_PARSE_FAILED),
        ("{", ErrorCode.GRAPHQL_PARSE_FAILED),
        ("{name @nope}", ErrorCode.GRAPHQL_VALIDATION_FAILED),
        ("{...F} fragment F on Query {...F}", ErrorCode.GRAPHQL_VALIDATION_FAILED),
        ("type A {b: Int}", ErrorCode.GRAPHQL_VALIDATION_FAILED),
        ("{name}" + " " * LIMITS.document_bytes, ErrorCode.DOCUMENT_TOO_EXPENSIVE),
        ("{name}" + "#\n" * 2_000, ErrorCode.DOCUMENT_TOO_EXPENSIVE),
        ("{" + "name " * 2_000 + "}", ErrorCode.DOCUMENT_TOO_EXPENSIVE),
        ("{me" * 17 + "{name}" + "}" * 17, ErrorCode.DOCUMENT_TOO_EXPENSIVE),
        ("{" + "".join(f"a{n}: name " for n in range(31)) + "}", ErrorCode.DOCUMENT_TOO_EXPENSIVE),
    ],
)
def test_what_is_refused(text: str, code: ErrorCode) -> None:
    with pytest.raises(RequestRefused) as refused:
        check_document(SCHEMA, text, LIMITS)
    assert refused.value.code == code


def test_lists_nested_without_end_are_refused_and_break_nothing() -> None:
    with pytest.raises(RequestRefused) as refused:
        check_document(SCHEMA, "{name(x: " + "[" * 900, LIMITS)
    assert refused.value.code == ErrorCode.DOCUMENT_TOO_EXPENSIVE


def test_which_operation_is_meant() -> None:
    document = check_document(SCHEMA, "query A {name} query B {name}", LIMITS)
    assert document.kind("A") is OperationType.QUERY
    assert check_document(SCHEMA, "{name}", LIMITS).kind(None) is OperationType.QUERY
    for name in (None, "C"):
        with pytest.raises(RequestRefused) as refused:
            document.kind(name)
        assert refused.value.code == ErrorCode.OPERATION_RESOLUTION_FAILURE


def test_checks_are_done_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0

    def check(schema: strawberry.Schema, text: str, limits: TransportLimits, prices: Prices) -> Document:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return check_document(schema, text, limits, prices)
        finally:
            running -= 1

    async def ask() -> None:
        known = Documents(SCHEMA, LIMITS)
        await asyncio.gather(*(known.prepare("{name}" + " " * n) for n in range(30)))

    monkeypatch.setattr(documents, "check_document", check)
    asyncio.run(ask())
    assert most == 1


def test_only_so_many_new_texts_wait(checked: list[str]) -> None:
    async def ask() -> list[object]:
        known = Documents(SCHEMA, replace(LIMITS, waiting_documents=3))
        await known.prepare("{name}")
        texts = ("{n: name}", "{n: name}", "{me {name}}", "{a: name}", "{b: name}", "{name}")
        return list(await asyncio.gather(*(known.prepare(text) for text in texts), return_exceptions=True))

    outcomes = asyncio.run(ask())
    assert [getattr(outcome, "code", None) for outcome in outcomes] == [None] * 4 + [ErrorCode.UNAVAILABLE, None]
    assert checked == ["{name}", "{n: name}", "{me {name}}", "{a: name}"]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Stops the garbage collector, which holds up every thread for as long as it looks at what there is."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_a_document_that_is_forgotten_is_freed_without_the_collector() -> None:
    document = check_document(
        SCHEMA, "query($a: Boolean!) {me {...F}} fragment F on Query {n: name @skip(if: $a)}", LIMITS
    )
    node = weakref.ref(document.operations[0])
    del document
    assert node() is None


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("text", ["{nope}", "{me " * 17 + "{name}" + "}" * 17])
def test_a_document_that_is_refused_is_freed_without_the_collector(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes: list[weakref.ref[DocumentNode]] = []

    def parsed(*arguments: Any, **options: Any) -> DocumentNode:
        found = parse(*arguments, **options)
        nodes.append(weakref.ref(found))
        return found

    async def ask() -> RequestRefused:
        with pytest.raises(RequestRefused) as refused:
            await Documents(SCHEMA, LIMITS).prepare(text)
        return refused.value

    monkeypatch.setattr(documents, "parse", parsed)
    refused = asyncio.run(ask())
    assert refused.errors
    assert [node() for node in nodes] == [None]
