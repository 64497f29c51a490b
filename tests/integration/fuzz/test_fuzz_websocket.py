"""Frames and messages of every kind and in any order: what goes wrong ends with a close frame that says so."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from starforge.api.transport.messages import CloseCode
from tests.integration.fuzz.documents import Asked, Documents
from tests.integration.fuzz.judge import Complaints, Tally, budget, judge_errors, judge_payload, judge_text, strictly
from tests.integration.fuzz.known import Known
from tests.integration.fuzz.sockets import CLOSE, INIT, PING, PONG, TEXT, Raw, frame, steps
from tests.integration.gateway import Gateway

CLOSE_CODES = {code.value for code in CloseCode} - {CloseCode.INTERNAL_ERROR} | {1000, 1002, 1007}
"""Those of ours, and those with which RFC 6455 ends a conversation that ended or broke its rules."""
END = b"the end"


def judge_frame(payload: bytes) -> str:
    text = payload.decode()
    judge_text(text)
    message = strictly(text)
    match message:
        case {"type": "next", "id": str(), "payload": data}:
            judge_payload(data)
        case {"type": "error", "id": str(), "payload": errors}:
            judge_errors(errors)
        case {"type": "complete", "id": str()} | {"type": "connection_ack" | "ping" | "pong"}:
            pass
        case _:
            raise AssertionError(message)
    return str(message["type"])


def converse(port: int, sent: list[bytes], tally: Tally) -> None:
    """Send all and then a ping; whatever comes until its pong, or until the close frame, is looked at."""
    raw = Raw.open(port)
    with raw.there:
        raw.send([*sent, frame(PING, END)])
        for opcode, payload in raw.frames():
            if opcode == TEXT:
                tally[judge_frame(payload)] += 1
            elif opcode == CLOSE:
                _judge_close(payload, tally)
                return
            elif (opcode, payload) == (PONG, END):
                raw.send([frame(CLOSE, (1000).to_bytes(2))])
    raise AssertionError("the connection ended without a close frame")


def _judge_close(payload: bytes, tally: Tally) -> None:
    judge_text(payload[2:].decode())
    code = int.from_bytes(payload[:2]) if payload else 1000
    echoed = {1001, 3000, 4999}
    assert code in CLOSE_CODES | echoed, code
    tally[str(code)] += 1


def test_frames(gateway: tuple[Gateway, Known], watched: Complaints) -> None:
    tally = Tally()

    @budget(150)
    @given(steps())
    def each(sent: list[bytes]) -> None:
        with watched.none(sent):
            converse(gateway[0].port, sent, tally)

    each()
    tally.show()
    assert tally["1000"] > 20, "hardly any conversation came to its end"


def _subscribe(number: int, asked: Asked) -> bytes:
    payload = {"query": asked.query, "variables": asked.variables}
    return frame(TEXT, json.dumps({"type": "subscribe", "id": str(number), "payload": payload}).encode())


def _until_answered(raw: Raw, name: str, tally: Tally) -> None:
    """Look at what comes until the operation called `name` has its answer."""
    for opcode, payload in raw.frames():
        assert opcode == TEXT, (opcode, payload)
        tally[judge_frame(payload)] += 1
        message: Any = json.loads(payload)
        if message["type"] == "ping":
            raw.send([frame(TEXT, b'{"type":"pong"}')])
        if message.get("id") == name and message["type"] in ("complete", "error"):
            return
    raise AssertionError("the connection ended")


def test_subscriptions(gateway: tuple[Gateway, Known], documents: Documents, watched: Complaints) -> None:
    """A query behind each is answered after it has begun: documents are checked one after the other."""
    tally, raw = Tally(), Raw.open(gateway[0].port)
    raw.send([INIT])
    look = Asked("query", "{ jobs(first: 9) { nodes { id revision } totalCount } }", {})

    @budget(100)
    @given(st.lists(documents.strategy("subscription"), min_size=1, max_size=3))
    def each(asked: list[Asked]) -> None:
        with watched.none(asked):
            raw.send([_subscribe(number, one) for number, one in enumerate(asked)])
            raw.send([_subscribe(99, look)])
            _until_answered(raw, "99", tally)
            ends = [
                frame(TEXT, json.dumps({"type": "complete", "id": str(number)}).encode())
                for number in range(len(asked))
            ]
            raw.send(ends)

    with raw.there:
        each()
    tally.show()
    assert tally["next"] > 20, "hardly anything was followed"
