"""GraphQL over server-sent events against a real server: graphql-sse, distinct connections."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from starforge.api.transport.limits import TransportLimits
from tests.integration.transport_server import PATIENCE_S, TOKEN, Running, serve

HEADERS = {"accept": "text/event-stream", "authorization": TOKEN}
Event = tuple[str, Any]


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    with serve() as running:
        yield running


@pytest.fixture
def server() -> Iterator[Running]:
    with serve() as running:
        yield running


@contextmanager
def opened(server: Running, query: str, **options: Any) -> Iterator[httpx.Response]:
    body = {"query": query} | options.pop("body", {})
    headers = HEADERS | options.pop("headers", {})
    with httpx.stream("POST", server.url, json=body, headers=headers, timeout=PATIENCE_S, **options) as response:
        yield response


def events(response: httpx.Response) -> Iterator[Event]:
    """Events as a browser would parse them; comments come as ("", text)."""
    name, data = "", list[str]()
    for line in response.iter_lines():
        if line.startswith(":"):
            yield "", line
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and name:
            yield name, json.loads("".join(data)) if any(data) else None
            name, data = "", []


def everything(server: Running, query: str, **options: Any) -> list[Event]:
    with opened(server, query, **options) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        return list(events(response))


def test_a_subscription_comes_event_by_event(shared: Running) -> None:
    wanted = [("next", {"data": {"count": number}}) for number in range(3)]
    assert everything(shared, "subscription {count(to: 3)}") == [*wanted, ("complete", None)]


@pytest.mark.parametrize("query", ['{echo(text: "a\\nb")}', '{ ... { echo(text: "a\\nb") } }'])
def test_a_query_is_one_event(shared: Running, query: str) -> None:
    assert everything(shared, query) == [("next", {"data": {"echo": "a\nb"}}), ("complete", None)]


@pytest.mark.parametrize(
    ("query", "code"), [("{", "GRAPHQL_PARSE_FAILED"), ("subscription {nothing}", "GRAPHQL_VALIDATION_FAILED")]
)
def test_what_a_document_has_wrong_comes_as_an_event(shared: Running, query: str, code: str) -> None:
    (kind, told), end = everything(shared, query)
    assert (kind, told["errors"][0]["extensions"]["code"], end) == ("next", code, ("complete", None))


def test_an_error_in_the_middle_ends_it_masked(shared: Running) -> None:
    first, (kind, told), end = everything(shared, "subscription {boom}")
    assert (first, kind, end) == (("next", {"data": {"boom": 1}}), "next", ("complete", None))
    assert told["errors"][0]["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
    assert "hunter2" not in json.dumps(told)


def test_nobody_without_a_token(shared: Running) -> None:
    with opened(shared, "{__typename}", headers={"authorization": ""}) as response:
        assert response.status_code == 401
        assert json.loads(response.read())["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


def test_a_get_may_subscribe_and_not_write(shared: Running) -> None:
    with httpx.stream("GET", shared.url, params={"query": "subscription {count(to: 1)}"}, headers=HEADERS) as response:
        assert list(events(response)) == [("next", {"data": {"count": 0}}), ("complete", None)]
    refused = httpx.get(shared.url, params={"query": "mutation {write}"}, headers=HEADERS)
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


def test_a_quiet_stream_has_heartbeats() -> None:
    with serve(TransportLimits(heartbeat_s=0.05)) as server, opened(server, "subscription {hang}") as response:
        stream = events(response)
        assert [next(stream) for _ in range(3)] == [("next", {"data": {"hang": 1}}), ("", ":"), ("", ":")]


def test_a_client_that_goes_ends_the_generator(server: Running) -> None:
    with opened(server, "subscription {hang}") as response:
        assert next(events(response)) == ("next", {"data": {"hang": 1}})
    assert server.world.ended.wait(PATIENCE_S)


def test_a_mutation_outlives_its_stream(server: Running) -> None:
    with opened(server, "mutation {write}") as response:
        assert response.status_code == 200
        assert server.world.started.wait(PATIENCE_S)
    server.world.open_gate()
    assert server.world.ended.wait(PATIENCE_S)
    assert not server.world.canceled.is_set()


def test_a_reader_that_does_not_read_is_given_up() -> None:
    with serve(TransportLimits(send_timeout_s=0.1)) as server, opened(server, "subscription {flood}") as response:
        assert response.status_code == 200
        assert server.world.ended.wait(PATIENCE_S)


def test_a_stream_too_many() -> None:
    with serve(TransportLimits(connections_per_caller=1)) as server, opened(server, "subscription {hang}") as response:
        stream = events(response)
        next(stream)
        with opened(server, "subscription {hang}") as refused:
            told = json.loads(refused.read())
        assert (refused.status_code, told["errors"][0]["extensions"]["code"]) == (429, "TOO_MANY_SUBSCRIPTIONS")


def test_a_mutation_is_answered_though_the_gateway_ends(server: Running) -> None:
    with opened(server, "mutation {write}") as response:
        assert server.world.started.wait(PATIENCE_S)
        server.ask_to_stop()
        server.world.open_gate()
        assert list(events(response)) == [("next", {"data": {"write": "written"}}), ("complete", None)]


def test_the_end_of_the_gateway_ends_streams(server: Running) -> None:
    with opened(server, "subscription {hang}") as response:
        stream = events(response)
        next(stream)
        server.ask_to_stop()
        assert list(stream) == []
    server.stop()
    assert server.world.ended.wait(PATIENCE_S)
