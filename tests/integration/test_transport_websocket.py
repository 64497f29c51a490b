"""graphql-transport-ws, against a real server: every close code, and what happens to operations when somebody goes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from starforge.api.transport.limits import TransportLimits
from tests.integration.transport_server import PATIENCE_S, TOKEN, Running, receive, send, serve, subscribe

SUBSCRIBE = {"type": "subscribe", "id": "1", "payload": {"query": "{__typename}"}}


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    with serve() as running:
        yield running


@pytest.fixture
def server() -> Iterator[Running]:
    """With a world of its own."""
    with serve() as running:
        yield running


def closed_with(socket: ClientConnection) -> int:
    """The code of the close frame that the server sends, whatever comes before it."""
    with pytest.raises(ConnectionClosed) as closed:
        read_all(socket)
    assert closed.value.rcvd is not None, "there was no close frame"
    return closed.value.rcvd.code


def read_all(socket: ClientConnection) -> None:
    while True:
        socket.recv(timeout=PATIENCE_S)


def results(socket: ClientConnection, operation_id: str = "1") -> tuple[list[Any], dict[str, Any]]:
    """The payloads of `next`, and the message after the last."""
    payloads = []
    while (message := receive(socket))["type"] == "next":
        assert message["id"] == operation_id
        payloads.append(message["payload"])
    return payloads, message


BAD_FRAMES: dict[str, Any] = {
    "no JSON": "{",
    "an empty frame": "",
    "NaN": '{"type": "ping", "payload": {"a": NaN}}',
    "a list": "[]",
    "a number": "5",
    "null": "null",
    "very deep": "[" * 60_000,
    "bytes": b'{"type": "ping"}',
    "no type": {},
    "a type that is a list": {"type": []},
    "an unknown type": {"type": "start"},
    "a type that only servers send": {"type": "connection_ack"},
    "next": {"type": "next", "id": "1", "payload": {}},
    "a ping's payload": {"type": "ping", "payload": "x"},
    "a pong's payload": {"type": "pong", "payload": 1},
    "an init's payload": {"type": "connection_init", "payload": []},
    "complete without id": {"type": "complete"},
    "complete with an id that is a list": {"type": "complete", "id": []},
    "subscribe without id": {**SUBSCRIBE, "id": None},
    "subscribe with an id that is a list": {**SUBSCRIBE, "id": []},
    "subscribe with an empty id": {**SUBSCRIBE, "id": ""},
    "subscribe with a long id": {**SUBSCRIBE, "id": "x" * 257},
    "subscribe without payload": {"type": "subscribe", "id": "1"},
    "subscribe with a payload that is a string": {**SUBSCRIBE, "payload": "x"},
    "subscribe without query": {**SUBSCRIBE, "payload": {}},
    "subscribe with a query that is a number": {**SUBSCRIBE, "payload": {"query": 5}},
    "variables that are a list": {**SUBSCRIBE, "payload": {"query": "{__typename}", "variables": [1]}},
    "an operation name that is a number": {**SUBSCRIBE, "payload": {"query": "{__typename}", "operationName": 5}},
    "extensions that are a string": {**SUBSCRIBE, "payload": {"query": "{__typename}", "extensions": "x"}},
}


def send_raw(socket: ClientConnection, frame: Any) -> None:
    socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))


@pytest.mark.parametrize("name", BAD_FRAMES)
@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_bad_frame_closes_with_4400(shared: Running, name: str, acknowledged: bool) -> None:
    if acknowledged:
        with shared.acknowledged() as socket:
            send_raw(socket, BAD_FRAMES[name])
            assert closed_with(socket) == 4400
    else:
        with shared.connect() as socket:
            send_raw(socket, BAD_FRAMES[name])
            assert closed_with(socket) == 4400


def test_subscribe_before_the_ack_closes_with_4401(shared: Running) -> None:
    with shared.connect() as socket:
        subscribe(socket, "{__typename}")
        assert closed_with(socket) == 4401


def test_subscribe_while_the_token_is_checked_closes_with_4401(shared: Running) -> None:
    with shared.connect() as socket:
        send(socket, type="connection_init", payload={"authorization": "Bearer slow"})
        subscribe(socket, "{__typename}")
        assert closed_with(socket) == 4401


def test_a_second_init_closes_with_4429(shared: Running) -> None:
    with shared.acknowledged() as socket:
        send(socket, type="connection_init")
        assert closed_with(socket) == 4429


def test_a_second_init_while_the_token_is_checked_closes_with_4429(shared: Running) -> None:
    with shared.connect() as socket:
        send(socket, type="connection_init", payload={"authorization": "Bearer slow"})
        send(socket, type="connection_init", payload={"authorization": TOKEN})
        assert closed_with(socket) == 4429


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (None, 4403),
        ({}, 4403),
        ({"authorization": "Bearer wrong"}, 4403),
        ({"authorization": 5}, 4403),
        ({"authorization": "Bearer viewer"}, 4403),
        ({"authorization": "Bearer outage"}, 1013),
        ({"authorization": "Bearer defect"}, 1013),
    ],
)
def test_who_is_not_let_in(shared: Running, payload: Any, code: int) -> None:
    with shared.connect() as socket:
        send(socket, type="connection_init", payload=payload)
        assert closed_with(socket) == code


@pytest.mark.parametrize("frame", [{"payload": None}, {}, {"payload": {"other": 1}}])
def test_the_http_header_lets_in_too(shared: Running, frame: dict[str, Any]) -> None:
    with shared.connect(additional_headers={"authorization": TOKEN}) as socket:
        send(socket, type="connection_init", **frame)
        assert receive(socket) == {"type": "connection_ack"}
        subscribe(socket, "{caller}")
        assert results(socket)[0] == [{"data": {"caller": "ada by websocket"}}]


@pytest.mark.parametrize("subprotocols", [None, ["graphql-ws"]])
def test_another_subprotocol_closes_with_4406(shared: Running, subprotocols: list[str] | None) -> None:
    with shared.connect(subprotocols=subprotocols) as socket:
        assert closed_with(socket) == 4406


def test_ours_is_chosen_among_several(shared: Running) -> None:
    with shared.connect(subprotocols=["graphql-ws", "graphql-transport-ws"]) as socket:
        assert socket.subprotocol == "graphql-transport-ws"


def test_an_id_in_use_closes_with_4409(shared: Running) -> None:
    with shared.acknowledged() as socket:
        subscribe(socket, "subscription {hang}")
        subscribe(socket, "{__typename}")
        assert closed_with(socket) == 4409


def test_no_init_closes_with_4408() -> None:
    with serve(TransportLimits(init_timeout_s=0.05)) as server, server.connect() as socket:
        assert closed_with(socket) == 4408


def test_no_pong_closes_with_4499() -> None:
    with serve(TransportLimits(ping_interval_s=0.02, pong_timeout_s=0.05)) as server, server.acknowledged() as socket:
        assert receive(socket) == {"type": "ping"}
        assert closed_with(socket) == 4499


def test_pongs_keep_a_connection(server: Running) -> None:
    limits = TransportLimits(ping_interval_s=0.01, pong_timeout_s=PATIENCE_S)
    with serve(limits) as eager, eager.acknowledged() as socket:
        for _ in range(3):
            assert receive(socket) == {"type": "ping"}
            send(socket, type="pong", payload={"any": 1})


@pytest.mark.parametrize("payload", [None, {"at": 1}])
def test_pings_are_answered_with_their_payload(shared: Running, payload: Any) -> None:
    with shared.connect() as socket:
        send(socket, type="ping", **({"payload": payload} if payload else {}))
        assert receive(socket) == {"type": "pong", **({"payload": payload} if payload else {})}


def test_frames_are_small_before_the_ack_and_larger_after(shared: Running) -> None:
    pad = {"pad": "x" * 70_000}
    with shared.acknowledged() as socket:
        send(socket, type="ping", payload=pad)
        assert receive(socket) == {"type": "pong", "payload": pad}
        send(socket, type="ping", payload={"pad": "x" * 1_100_000})
        assert closed_with(socket) == 1009
    with shared.connect() as socket:
        send(socket, type="ping", payload=pad)
        assert closed_with(socket) == 1009


def test_a_foreign_origin_is_refused_before_it_is_open(shared: Running) -> None:
    with pytest.raises(InvalidStatus) as refused:
        shared.connect(origin="http://evil.example")
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    ("query", "extra", "code"),
    [
        ("{", {}, "GRAPHQL_PARSE_FAILED"),
        ("{nope}", {}, "GRAPHQL_VALIDATION_FAILED"),
        ("subscription {nope}", {}, "GRAPHQL_VALIDATION_FAILED"),
        ("query A {__typename}", {"operationName": "B"}, "OPERATION_RESOLUTION_FAILURE"),
        ("query($t: String!) {echo(text: $t)}", {}, "BAD_USER_INPUT"),
        ("subscription($n: Int!) {count(to: $n)}", {"variables": {"n": "x"}}, "BAD_USER_INPUT"),
        ("{notJson}", {}, "INTERNAL_SERVER_ERROR"),
    ],
)
def test_an_error_in_one_operation_ends_no_other(server: Running, query: str, extra: dict[str, Any], code: str) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, "subscription {hang}", id="stays")
        assert receive(socket) == {"id": "stays", "type": "next", "payload": {"data": {"hang": 1}}}
        subscribe(socket, query, id="bad", **extra)
        message = receive(socket)
        assert (message["type"], message["id"], message["payload"][0]["extensions"]["code"]) == ("error", "bad", code)
        subscribe(socket, "{__typename}", id="bad")  # its id is free again
        assert results(socket, "bad")[1] == {"id": "bad", "type": "complete"}
        assert not server.world.ended.is_set()


def test_a_query_a_failing_field_and_a_subscription(shared: Running) -> None:
    with shared.acknowledged() as socket:
        subscribe(socket, '{echo(text: "hi")}', variables=None, operationName=None, extensions=None)
        assert results(socket) == ([{"data": {"echo": "hi"}}], {"id": "1", "type": "complete"})
        subscribe(socket, "{secret}")
        [payload], last = results(socket)
        assert (payload["data"], payload["errors"][0]["path"]) == ({"secret": None}, ["secret"])
        assert last == {"id": "1", "type": "complete"}
        subscribe(socket, "subscription($n: Int!) {count(to: $n)}", variables={"n": 3})
        payloads, last = results(socket)
        assert [payload["data"]["count"] for payload in payloads] == [0, 1, 2]
        assert last == {"id": "1", "type": "complete"}


def test_each_event_has_fresh_loaders_and_each_operation_a_fresh_context(shared: Running) -> None:
    with shared.acknowledged() as socket:
        for _ in range(2):
            subscribe(socket, "subscription {loaders}")
            assert [payload["data"]["loaders"] for payload in results(socket)[0]] == [1, 2, 3]


def test_a_generator_that_raises_ends_with_a_masked_error(shared: Running, caplog: pytest.LogCaptureFixture) -> None:
    with shared.acknowledged() as socket:
        subscribe(socket, "subscription {boom}")
        payloads, last = results(socket)
        assert [payload["data"] for payload in payloads] == [{"boom": 1}]
        assert (last["type"], last["id"]) == ("error", "1")
        [error] = last["payload"]
        assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
        assert "hunter2" not in json.dumps(last)
        assert any(error["extensions"]["id"] in record.getMessage() for record in caplog.records)


def test_a_generator_may_say_how_to_go_on(shared: Running) -> None:
    with shared.acknowledged() as socket:
        subscribe(socket, "subscription {gone}")
        _, last = results(socket)
        [error] = last["payload"]
        del error["extensions"]["id"]
        assert error == {
            "message": "The database can't be reached.",
            "extensions": {"code": "UNAVAILABLE", "retryable": True, "retryAfterSeconds": 3, "cursor": "c7"},
        }


def test_complete_ends_a_subscription_and_frees_its_id(server: Running) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, "subscription {hang}")
        assert receive(socket)["type"] == "next"
        assert server.world.started.wait(PATIENCE_S)
        send(socket, type="complete", id="1")
        send(socket, type="complete", id="unknown")
        assert server.world.ended.wait(PATIENCE_S)
        subscribe(socket, '{echo(text: "again")}')
        assert results(socket) == ([{"data": {"echo": "again"}}], {"id": "1", "type": "complete"})


@pytest.mark.parametrize("query", ["subscription {hang}", "{gate}"])
def test_a_client_that_goes_ends_its_reading_operations(server: Running, query: str) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, query)
        assert server.world.started.wait(PATIENCE_S)
    assert server.world.canceled.wait(PATIENCE_S)


def test_a_query_that_is_completed_is_canceled_and_says_no_more(server: Running) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, "{gate}")
        assert server.world.started.wait(PATIENCE_S)
        send(socket, type="complete", id="1")
        assert server.world.canceled.wait(PATIENCE_S)
        send(socket, type="ping")
        assert receive(socket) == {"type": "pong"}


def test_a_mutation_that_is_completed_goes_on_and_says_no_more(server: Running) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, "mutation {write}")
        assert server.world.started.wait(PATIENCE_S)
        send(socket, type="complete", id="1")
        send(socket, type="ping")
        assert receive(socket) == {"type": "pong"}
        server.world.open_gate()
        assert server.world.ended.wait(PATIENCE_S)
        subscribe(socket, "{__typename}")
        assert results(socket) == ([{"data": {"__typename": "Query"}}], {"id": "1", "type": "complete"})
    assert not server.world.canceled.is_set()


def test_a_mutation_outlives_the_socket(server: Running) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, "mutation {write}")
        assert server.world.started.wait(PATIENCE_S)
    server.world.open_gate()
    assert server.world.ended.wait(PATIENCE_S)
    assert not server.world.canceled.is_set()


def test_a_deploy_answers_what_has_begun_and_closes_with_1012(server: Running) -> None:
    with server.acknowledged() as socket:
        subscribe(socket, "mutation {write}", id="m")
        assert server.world.started.wait(PATIENCE_S)
        server.ask_to_stop()
        server.world.open_gate()
        assert results(socket, "m")[0][0]["data"] == {"write": "written"}
        assert closed_with(socket) == 1012
    server.stop()
    assert server.world.journal == ["written"]


def test_a_generator_that_never_waits_keeps_nobody_else_waiting(server: Running) -> None:
    with server.acknowledged(close_timeout=0.1) as socket:
        subscribe(socket, "subscription {restless}", id="restless")
        subscribe(socket, "{__typename}", id="other")
        while receive(socket)["id"] != "other":
            assert not server.world.ended.is_set()
        send(socket, type="complete", id="restless")
        assert server.world.ended.wait(PATIENCE_S)


def test_too_many_operations_on_one_connection() -> None:
    with serve(TransportLimits(operations_per_connection=2)) as server, server.acknowledged() as socket:
        for number in range(2):
            subscribe(socket, "subscription {hang}", id=str(number))
            assert receive(socket)["type"] == "next"
        subscribe(socket, "{__typename}", id="one too many")
        message = receive(socket)
        assert (message["type"], message["id"]) == ("error", "one too many")
        assert message["payload"][0]["extensions"]["code"] == "TOO_MANY_SUBSCRIPTIONS"


def test_a_thousand_operations_one_after_the_other_leave_room(shared: Running) -> None:
    with shared.acknowledged() as socket:
        for number in range(1_000):
            subscribe(socket, "{__typename}", id=str(number))
            assert results(socket, str(number))[1]["type"] == "complete"


def test_a_reader_that_does_not_read_is_given_up() -> None:
    limits = TransportLimits(send_timeout_s=0.1)
    with serve(limits) as server, server.acknowledged(close_timeout=0.1) as socket:
        subscribe(socket, "subscription {flood}")
        # Unread, the client's queue fills up, then the kernel's buffers, then the server's.
        assert server.world.ended.wait(PATIENCE_S)
