"""GraphQL over HTTP, against a real server."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from starforge.api.transport.app import PATH
from starforge.api.transport.limits import TransportLimits
from tests.integration.transport_server import PATIENCE_S, TOKEN, Running, serve

GRAPHQL = "application/graphql-response+json"
JSON = "application/json"
LIMITS = TransportLimits(body_bytes=20_000, execution_timeout_s=PATIENCE_S)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serve(LIMITS) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[httpx.Client]:
    headers = {"authorization": TOKEN, "accept": GRAPHQL}
    with httpx.Client(base_url=server.url.removesuffix(PATH), headers=headers, timeout=PATIENCE_S) as opened:
        yield opened


def post(client: httpx.Client, body: Any, **headers: str) -> httpx.Response:
    sent = {"content-type": JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(PATH, content=content, headers=sent)


def code_of(response: httpx.Response) -> str | None:
    errors = response.json().get("errors")
    return errors[0]["extensions"]["code"] if errors else None


DIAMOND = "{...F0} " + "".join(f"fragment F{n} on Query {{...F{n + 1} ...F{n + 1}}} " for n in range(30))
DIAMOND += 'fragment F30 on Query {echo(text: "x")}'

# name: body, status by the new media type, status by application/json, code
BODIES: dict[str, tuple[Any, int, int, str | None]] = {
    "a query": ({"query": '{echo(text: "hi")}'}, 200, 200, None),
    "a mutation's name": ({"query": "mutation {__typename}"}, 200, 200, None),
    "members nobody knows": ({"query": "{__typename}", "id": 5, "documentId": None}, 200, 200, None),
    "null members": (
        {"query": "{__typename}", "variables": None, "operationName": None, "extensions": None}, 200, 200, None),
    "variables": ({"query": "query($t: String!) {echo(text: $t)}", "variables": {"t": "x"}}, 200, 200, None),
    "the named one of two": ({"query": "query A {a: __typename} query B {b: __typename}", "operationName": "B"},
                             200, 200, None),
    "half of a surrogate pair": (r'{"query": "{echo(text: \"\\ud83d\\ude00 \")}"}', 200, 200, None),
    "a field that fails": ({"query": "{secret}"}, 200, 200, "INTERNAL_SERVER_ERROR"),
    "a root that fails": ({"query": "{never}"}, 200, 200, "NOT_FOUND"),
    "what JSON can't carry": ({"query": "{notJson}"}, 500, 500, "INTERNAL_SERVER_ERROR"),
    "no JSON": ("{", 400, 400, "BAD_REQUEST"),
    "no UTF-8": (b'{"query": "{\xff}"}', 400, 400, "BAD_REQUEST"),
    "NaN": ('{"query": "{__typename}", "variables": {"a": NaN}}', 400, 400, "BAD_REQUEST"),
    "nothing": ("", 400, 400, "BAD_REQUEST"),
    "a very deep body": ("[" * 19_000, 400, 400, "BAD_REQUEST"),
    "a number": ("5", 400, 400, "BAD_REQUEST"),
    "a string": ('"x"', 400, 400, "BAD_REQUEST"),
    "a list": ([{"query": "{__typename}"}], 400, 400, "BAD_REQUEST"),
    "null": ("null", 400, 400, "BAD_REQUEST"),
    "no query": ({"qeury": "{__typename}"}, 400, 400, "BAD_REQUEST"),
    "a blank query": ({"query": " "}, 400, 400, "BAD_REQUEST"),
    "a query that is an object": ({"query": {}}, 400, 400, "BAD_REQUEST"),
    "variables that are a list": ({"query": "{__typename}", "variables": [1]}, 400, 400, "BAD_REQUEST"),
    "variables that are a string": ({"query": "{__typename}", "variables": "{}"}, 400, 400, "BAD_REQUEST"),
    "extensions that are false": ({"query": "{__typename}", "extensions": False}, 400, 400, "BAD_REQUEST"),
    "an operation name that is 0": ({"query": "{__typename}", "operationName": 0}, 400, 400, "BAD_REQUEST"),
    "a subscription": ({"query": "subscription {count(to: 1)}"}, 400, 400, "BAD_REQUEST"),
    "a document that can't be parsed": ({"query": "{"}, 400, 200, "GRAPHQL_PARSE_FAILED"),
    "an unknown field": ({"query": "{nope}"}, 400, 200, "GRAPHQL_VALIDATION_FAILED"),
    "an unknown fragment": ({"query": "{...Unknown}"}, 400, 200, "GRAPHQL_VALIDATION_FAILED"),
    "an unknown operation": ({"query": "query A {__typename}", "operationName": "B"}, 400, 200,
                             "OPERATION_RESOLUTION_FAILURE"),
    "one of two operations": ({"query": "query A {__typename} query B {__typename}"}, 400, 200,
                              "OPERATION_RESOLUTION_FAILURE"),
    "a missing variable": ({"query": "query($t: String!) {echo(text: $t)}"}, 400, 200, "BAD_USER_INPUT"),
    "a variable of the wrong type": (
        {"query": "query($t: String!) {echo(text: $t)}", "variables": {"t": [1]}}, 400, 200, "BAD_USER_INPUT"),
    "a deep document": ({"query": "{me" * 20 + "{__typename}" + "}" * 20}, 400, 200, "DOCUMENT_TOO_EXPENSIVE"),
    "a document of many tokens": ({"query": "{" + "__typename " * 1_001 + "}"}, 400, 200, "DOCUMENT_TOO_EXPENSIVE"),
    "many aliases": ({"query": "{" + "".join(f"a{n}: __typename " for n in range(31)) + "}"}, 400, 200,
                     "DOCUMENT_TOO_EXPENSIVE"),
    "a diamond of fragments": ({"query": DIAMOND}, 400, 200, "DOCUMENT_TOO_EXPENSIVE"),
    "a body that is too large": ({"query": "{__typename}", "pad": "x" * 20_000}, 413, 413, "BAD_REQUEST"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_status_and_code_by_the_new_media_type(client: httpx.Client, name: str) -> None:
    body, status, _, code = BODIES[name]
    response = post(client, body)
    assert (response.status_code, code_of(response)) == (status, code)
    assert response.headers["content-type"] == f"{GRAPHQL}; charset=utf-8"
    assert ("data" in response.json()) == (response.status_code == 200)


@pytest.mark.parametrize("name", BODIES)
def test_status_and_code_by_application_json(client: httpx.Client, name: str) -> None:
    body, _, status, code = BODIES[name]
    response = post(client, body, accept=JSON)
    assert (response.status_code, code_of(response)) == (status, code)
    assert response.headers["content-type"] == f"{JSON}; charset=utf-8"


@pytest.mark.parametrize(
    ("headers", "status", "content_type"),
    [
        ({"accept": "*/*"}, 200, JSON),
        ({"accept": f"{JSON}, {GRAPHQL}"}, 200, GRAPHQL),
        ({"accept": "image/png"}, 406, JSON),
        ({"content_type": "application/json; charset=UTF-8"}, 200, GRAPHQL),
        ({"content_type": "application/json; charset=latin-1"}, 415, GRAPHQL),
        ({"content_type": "text/plain"}, 415, GRAPHQL),
        ({"content_type": "application/x-www-form-urlencoded"}, 415, GRAPHQL),
        ({"content_type": "multipart/form-data; boundary=x"}, 415, GRAPHQL),
        ({"content_type": ""}, 415, GRAPHQL),
        ({"authorization": ""}, 401, GRAPHQL),
        ({"authorization": "Bearer wrong"}, 401, GRAPHQL),
        ({"authorization": "Bearer viewer"}, 403, GRAPHQL),
        ({"authorization": "Bearer outage"}, 503, GRAPHQL),
        ({"authorization": "Bearer defect"}, 500, GRAPHQL),
    ],
)
def test_headers(client: httpx.Client, headers: dict[str, str], status: int, content_type: str) -> None:
    response = post(client, {"query": "{__typename}"}, **headers)
    assert (response.status_code, response.headers["content-type"]) == (status, f"{content_type}; charset=utf-8")
    assert ("errors" in response.json()) == (status != 200)


def test_a_missing_token_is_asked_for(client: httpx.Client) -> None:
    response = post(client, {"query": "{__typename}"}, authorization="")
    assert response.headers["www-authenticate"] == 'Bearer realm="starforge"'
    assert code_of(response) == "UNAUTHENTICATED"


def test_an_outage_says_when_to_come_back(client: httpx.Client) -> None:
    response = post(client, {"query": "{__typename}"}, authorization="Bearer outage")
    assert response.headers["retry-after"] == "3"
    extensions = response.json()["errors"][0]["extensions"]
    assert (extensions["retryAfterSeconds"], extensions["retryable"]) == (2.5, True)


@pytest.mark.parametrize(
    ("parameters", "headers", "status", "allow"),
    [
        ({"query": '{echo(text: "hi")}'}, {}, 200, None),
        ({"query": "query($t: String!) {echo(text: $t)}", "variables": '{"t": "x"}'}, {}, 200, None),
        ({"query": "{__typename}", "variables": ""}, {}, 200, None),
        ({"query": "{__typename}", "variables": "[1]"}, {}, 400, None),
        ({"query": "{__typename}", "variables": "{"}, {}, 400, None),
        ({"query": "{"}, {}, 400, None),
        ({}, {}, 400, None),
        ({"query": "mutation {write}"}, {}, 405, "POST"),
        ({"query": "subscription {count(to: 1)}"}, {}, 400, None),
        ({"query": "{__typename}"}, {"sec-fetch-site": "same-origin"}, 200, None),
        ({"query": "{__typename}"}, {"sec-fetch-site": "cross-site", "x-starforge-csrf": "1"}, 200, None),
    ],
)
def test_get(
    client: httpx.Client, parameters: dict[str, str], headers: dict[str, str], status: int, allow: str | None
) -> None:
    response = client.get(PATH, params=parameters, headers=headers)
    assert (response.status_code, response.headers.get("allow")) == (status, allow)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods(client: httpx.Client, method: str) -> None:
    response = client.request(method, PATH)
    assert (response.status_code, response.headers["allow"]) == (405, "GET, POST")


def test_a_browser_gets_a_page_that_loads_nothing_from_elsewhere(server: Running) -> None:
    response = httpx.get(server.url, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in response.headers["content-security-policy"]
    nonce = response.headers["content-security-policy"].partition("'nonce-")[2].partition("'")[0]
    assert f'<script nonce="{nonce}">' in response.text
    assert "http://" not in response.text
    assert "https://" not in response.text


def test_a_caller_reaches_the_context(client: httpx.Client) -> None:
    assert post(client, {"query": "{caller}"}).json() == {"data": {"caller": "ada by http"}}


def test_an_exception_is_masked_and_logged_under_its_id(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    response = post(client, {"query": "{secret}"})
    [error] = response.json()["errors"]
    assert "hunter2" not in response.text
    assert (error["path"], error["extensions"]["retryable"]) == (["secret"], False)
    [record] = [record for record in caplog.records if error["extensions"]["id"] in record.getMessage()]
    assert record.levelno == logging.ERROR
    assert "hunter2" in caplog.text
    assert error["extensions"]["id"] in error["message"]


def test_a_mutation_outlives_the_client_that_sent_it() -> None:
    with serve() as server:
        body = {"query": "mutation {write}"}
        with httpx.Client(headers={"authorization": TOKEN}, timeout=PATIENCE_S) as client:

            def call() -> None:
                with pytest.raises(httpx.TimeoutException):
                    client.post(server.url, json=body, timeout=httpx.Timeout(PATIENCE_S, read=0.01))

            caller = threading.Thread(target=call)
            caller.start()
            assert server.world.started.wait(PATIENCE_S)
            caller.join(PATIENCE_S)
        server.world.open_gate()
        assert server.world.ended.wait(PATIENCE_S)
        assert not server.world.canceled.is_set()


@pytest.mark.parametrize(("query", "canceled"), [("{gate}", True), ("mutation {write}", False)])
def test_what_takes_too_long_is_given_up_but_a_mutation_goes_on(query: str, canceled: bool) -> None:
    with serve(TransportLimits(execution_timeout_s=0.05)) as server:
        headers = {"authorization": TOKEN, "accept": GRAPHQL}
        response = httpx.post(server.url, json={"query": query}, headers=headers, timeout=PATIENCE_S)
        assert (response.status_code, code_of(response)) == (504, "TIMEOUT")
        assert server.world.canceled.is_set() is canceled
        server.world.open_gate()
        if not canceled:
            assert server.world.ended.wait(PATIENCE_S)


def test_a_token_that_cannot_be_checked_in_time_is_no_refusal() -> None:
    with serve(TransportLimits(authentication_timeout_s=0.05)) as server:
        headers = {"authorization": "Bearer slow", "accept": GRAPHQL}
        response = httpx.post(server.url, json={"query": "{__typename}"}, headers=headers, timeout=PATIENCE_S)
        assert (response.status_code, code_of(response)) == (503, "UNAVAILABLE")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost:1"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:5173"}, 200),
    ],
)
def test_only_known_hosts_and_origins(client: httpx.Client, headers: dict[str, str], status: int) -> None:
    assert post(client, {"query": "{__typename}"}, **headers).status_code == status


def test_our_own_pages_may_use_the_gateway(server: Running, client: httpx.Client) -> None:
    origin = f"http://127.0.0.1:{server.port}"
    assert post(client, {"query": "{__typename}"}, origin=origin).status_code == 200
