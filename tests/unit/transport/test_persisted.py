import json
from pathlib import Path

import pytest
import strawberry
from graphql import get_introspection_query

from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.persisted import Persisted, id_of, load_persisted
from starforge.api.transport.request import GraphQLRequest, MalformedRequest, read_request
from starforge.api.transport.schema import GatewaySchema
from starforge.domain.errors import SettingsWrong

KNOWN = "{name}"
DOCUMENTS = {id_of(KNOWN): KNOWN, "Greeting.1": "query Greeting {name}"}


@strawberry.type
class Query:
    name: str = "x"


SCHEMA = GatewaySchema(query=Query)


def asked(query: str = "", document_id: str | None = None) -> GraphQLRequest:
    return GraphQLRequest(query, "A", {"b": 1}, {"c": 2}, document_id)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("only", [False, True])
def test_an_id_stands_for_its_document_and_the_rest_stays(name: str, *, only: bool) -> None:
    found = Persisted(DOCUMENTS, only=only).resolve(asked(document_id=name))
    assert found == GraphQLRequest(DOCUMENTS[name], "A", {"b": 1}, {"c": 2}, name)


@pytest.mark.parametrize(
    ("query", "document_id"),
    [
        (KNOWN, id_of(KNOWN)),
        ("query Greeting {name}", "Greeting.1"),
        ("{other: name}", id_of("{other: name}")),
        ("{other: name}", id_of("{other: name}").upper().replace("SHA", "sha")),
        ("{other: name}", None),
    ],
)
def test_a_document_and_its_id_are_taken_together(query: str, document_id: str | None) -> None:
    assert Persisted(DOCUMENTS).resolve(asked(query, document_id)).query == query


@pytest.mark.parametrize("document_id", [id_of("{other: name}"), "Greeting.1", "Unknown", "sha256:", "sha256:00"])
@pytest.mark.parametrize("only", [False, True])
def test_a_document_and_the_id_of_another_are_refused(document_id: str, *, only: bool) -> None:
    with pytest.raises(RequestRefused, match="mean different documents") as refused:
        Persisted(DOCUMENTS, only=only).resolve(asked(KNOWN, document_id))
    assert refused.value.code == ErrorCode.BAD_REQUEST


@pytest.mark.parametrize("persisted", [Persisted(DOCUMENTS), Persisted(DOCUMENTS, only=True), Persisted()])
def test_an_unknown_id_is_not_found(persisted: Persisted) -> None:
    with pytest.raises(RequestRefused, match="no persisted document") as refused:
        persisted.resolve(asked(document_id="sha256:00"))
    assert (refused.value.code, refused.value.status) == (ErrorCode.PERSISTED_DOCUMENT_NOT_FOUND, 404)


@pytest.mark.parametrize("query", ["{other: name}", get_introspection_query(), "{name} ", "{"])
@pytest.mark.parametrize("named", [False, True])
def test_an_allow_list_lets_nothing_else_through(query: str, *, named: bool) -> None:
    with pytest.raises(RequestRefused, match="persisted documents only") as refused:
        Persisted(DOCUMENTS, only=True).resolve(asked(query, id_of(query) if named else None))
    assert refused.value.code == ErrorCode.PERSISTED_DOCUMENT_NOT_FOUND


def test_an_allow_list_knows_its_documents_by_their_text() -> None:
    assert Persisted(DOCUMENTS, only=True).resolve(asked(KNOWN)).query == KNOWN


def test_a_request_may_have_an_id_in_place_of_a_document() -> None:
    assert read_request({"documentId": "a"}) == GraphQLRequest("", document_id="a")
    assert read_request({"documentId": "a", "query": None}) == GraphQLRequest("", document_id="a")
    assert read_request({"documentId": "", "query": "{a}"}) == GraphQLRequest("{a}")


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({}, "documentId"),
        ({"documentId": ""}, "documentId"),
        ({"query": " ", "documentId": None}, "query"),
        ({"documentId": 1}, "documentId"),
        ({"documentId": ["a"], "query": "{a}"}, "documentId"),
        ({"documentId": "a", "query": 1}, "query"),
    ],
)
def test_what_is_no_request_names_the_member(body: object, member: str) -> None:
    with pytest.raises(MalformedRequest, match=f"`{member}`"):
        read_request(body)


def load(path: Path, content: object, *, only: bool = False) -> Persisted:
    file = path / "documents.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return load_persisted(file, SCHEMA, TransportLimits(), only=only)


def test_a_manifest_is_loaded(tmp_path: Path) -> None:
    persisted = load(tmp_path, DOCUMENTS, only=True)
    assert persisted.resolve(asked(document_id="Greeting.1")).query == DOCUMENTS["Greeting.1"]
    with pytest.raises(RequestRefused):
        persisted.resolve(asked("{other: name}"))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "can't be read as JSON"),
        ("[" * 100_000, "can't be read as JSON"),
        ("[]", "has to be an object"),
        ({"a": 1}, "has to be an object"),
        ({"": "{name}"}, "has to be an object"),
        ({id_of("{name}"): "{name }"}, f"has another hash, {id_of('{name }')}"),
        ({"a": "{name}", "b": "{nope}"}, r"document b can't be run \(Cannot query field 'nope' on type 'Query'"),
        ({"a": "{"}, "document a can't be run"),
        ({"a": "{" + "name " * 2_000 + "}"}, "document a can't be run"),
    ],
)
def test_a_wrong_manifest_stops_the_start_with_a_sentence(tmp_path: Path, content: object, sentence: str) -> None:
    with pytest.raises(SettingsWrong, match=sentence) as wrong:
        load(tmp_path, content)
    assert len(wrong.value.problems) == 1
    assert wrong.value.problems[0].message.startswith("FORGE_PERSISTED_MANIFEST ")


def test_a_manifest_that_went_missing_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsWrong, match="can't be read"):
        load_persisted(tmp_path / "none.json", SCHEMA, TransportLimits(), only=False)


def test_without_a_manifest_every_document_is_taken_as_it_is() -> None:
    request = asked("{anything}")
    assert load_persisted(None, SCHEMA, TransportLimits(), only=False).resolve(request) is request
