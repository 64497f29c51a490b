import json
from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.transport import messages
from starforge.api.transport.messages import BadMessage, ClientMessage, Complete, Ping, Subscribe, read_message
from starforge.api.transport.request import GraphQLRequest

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
kinds = st.sampled_from(["connection_init", "ping", "pong", "subscribe", "complete", "next", "start"])
frames = st.fixed_dictionaries({}, optional={"type": kinds | anything, "id": anything, "payload": anything})


@given(st.text() | (frames | anything).map(json.dumps))
def test_a_frame_is_a_message_or_bad_and_nothing_else(text: str) -> None:
    with suppress(BadMessage):
        assert isinstance(read_message(text), get_args(ClientMessage))


def test_what_is_read() -> None:
    payload = {"query": "{a}", "operationName": "", "variables": {"b": 1}, "unknown": 5}
    subscribe = read_message(json.dumps({"id": "7", "type": "subscribe", "payload": payload}))
    assert subscribe == Subscribe("7", GraphQLRequest("{a}", None, {"b": 1}, None))
    assert read_message('{"id": "7", "type": "complete", "payload": null}') == Complete("7")
    assert read_message('{"type": "ping", "payload": null}') == Ping(None)


@given(st.text(max_size=20))
def test_a_result_is_framed_by_its_prefix_and_a_brace(operation_id: str) -> None:
    message = json.loads(messages.next_prefix(operation_id) + b'{"data":1}' + b"}")
    assert message == {"id": operation_id, "type": "next", "payload": {"data": 1}}


@pytest.mark.parametrize("text", ["é", "\ud800", "\U0001f600"])
def test_every_text_can_be_sent(text: str) -> None:
    assert json.loads(messages.error("1", [text]).encode())["payload"] == [text]


@pytest.mark.parametrize("text", ["1e999", "-1e999", "NaN", "Infinity", "9" * 5000])
def test_a_number_that_no_answer_could_carry_is_not_json(text: str) -> None:
    with pytest.raises(BadMessage, match="not JSON"):
        read_message(f'{{"type": "ping", "payload": {{"a": {text}}}}}')
