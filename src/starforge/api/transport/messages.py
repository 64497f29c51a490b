"""The messages of graphql-transport-ws (PROTOCOL.md of enisdenjo/graphql-ws), as values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from starforge.api.transport.encoding import NotJson, decode_json, encode_json
from starforge.api.transport.request import GraphQLRequest, MalformedRequest, read_request

SUBPROTOCOL = "graphql-transport-ws"
MAX_ID_LENGTH = 256
"""An id goes out again with every event."""


class CloseCode(IntEnum):
    """Clients come back after SERVICE_RESTART, TRY_AGAIN_LATER, FORBIDDEN, INIT_TIMEOUT and TERMINATED, and stop for
    good after the rest."""

    TOO_BIG = 1009
    SERVICE_RESTART = 1012
    TRY_AGAIN_LATER = 1013
    BAD_MESSAGE = 4400
    UNAUTHORIZED = 4401
    FORBIDDEN = 4403
    SUBPROTOCOL_NOT_ACCEPTABLE = 4406
    INIT_TIMEOUT = 4408
    ID_IN_USE = 4409
    TOO_MANY_INITS = 4429
    TERMINATED = 4499
    INTERNAL_ERROR = 4500


@dataclass(frozen=True)
class ConnectionInit:
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class Ping:
    payload: Mapping[str, Any] | None


@dataclass(frozen=True)
class Pong: ...


@dataclass(frozen=True)
class Subscribe:
    id: str
    request: GraphQLRequest


@dataclass(frozen=True)
class Complete:
    id: str


ClientMessage = ConnectionInit | Ping | Pong | Subscribe | Complete


class BadMessage(ValueError):
    """The frame is not a message of the protocol; the sentence is the reason of the close frame."""


def read_message(text: str) -> ClientMessage:
    """Raises BadMessage."""
    try:
        frame = decode_json(text)
    except NotJson as error:
        raise BadMessage("The frame is not JSON.") from error
    if not isinstance(frame, dict):
        raise BadMessage("A message is a JSON object.")
    kind = frame.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise BadMessage("The message's `type` is not one that a client sends.")
    return reader(frame)


def _payload(frame: Mapping[str, Any]) -> Mapping[str, Any] | None:
    payload = frame.get("payload")
    if not isinstance(payload, dict | None):
        raise BadMessage("`payload` has to be an object, null or left out.")
    return payload


def _id(frame: Mapping[str, Any]) -> str:
    operation_id = frame.get("id")
    if not isinstance(operation_id, str) or not 0 < len(operation_id) <= MAX_ID_LENGTH:
        raise BadMessage(f"`id` has to be a string of 1 to {MAX_ID_LENGTH} characters.")
    return operation_id


def _subscribe(frame: Mapping[str, Any]) -> Subscribe:
    try:
        return Subscribe(_id(frame), read_request(frame.get("payload")))
    except MalformedRequest as error:
        raise BadMessage(str(error)) from error


def _pong(frame: Mapping[str, Any]) -> Pong:
    _payload(frame)
    return Pong()


_READERS: dict[str, Callable[[Mapping[str, Any]], ClientMessage]] = {
    "connection_init": lambda frame: ConnectionInit(_payload(frame) or {}),
    "ping": lambda frame: Ping(_payload(frame)),
    "pong": _pong,
    "subscribe": _subscribe,
    "complete": lambda frame: Complete(_id(frame)),
}


def connection_ack() -> str:
    return '{"type":"connection_ack"}'


def ping() -> str:
    return '{"type":"ping"}'


def pong(payload: Mapping[str, Any] | None) -> str:
    return encode_json({"type": "pong"} if payload is None else {"type": "pong", "payload": payload})


def next_prefix(operation_id: str) -> bytes:
    """What comes before the payload of a result; a closing brace comes after it."""
    return f'{{"id":{encode_json(operation_id)},"type":"next","payload":'.encode()


def error(operation_id: str, errors: object) -> str:
    return encode_json({"id": operation_id, "type": "error", "payload": errors})


def complete(operation_id: str) -> str:
    return encode_json({"id": operation_id, "type": "complete"})
