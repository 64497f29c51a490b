"""Frames of RFC 6455 and messages of graphql-transport-ws, right and wrong, and a client that can send each."""

import base64
import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.integration.fuzz.values import TEXTS, WRONG
from tests.integration.fuzz.wire import members
from tests.integration.gateway import PATIENCE_S, TOKEN

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
TYPES = [
    "connection_init",
    "subscribe",
    "complete",
    "ping",
    "pong",
    "next",
    "error",
    "connection_ack",
    "start",
    "",
    "\x00",
]
MASK = b"abcd"


def frame(opcode: int, payload: bytes, *, final: bool = True, masked: bool = True, reserved: int = 0) -> bytes:
    first, mask = opcode | (0x80 if final else 0) | reserved, 0x80 if masked else 0
    if len(payload) < 126:
        head = bytes((first, mask | len(payload)))
    elif len(payload) < 65536:
        head = bytes((first, mask | 126)) + struct.pack(">H", len(payload))
    else:
        head = bytes((first, mask | 127)) + struct.pack(">Q", len(payload))
    if not masked:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))


INIT = frame(TEXT, json.dumps({"type": "connection_init", "payload": {"authorization": f"Bearer {TOKEN}"}}).encode())


def _messages() -> st.SearchStrategy[bytes]:
    wrong, ids = st.sampled_from(WRONG), st.sampled_from(["1", "2", "3", "x" * 256, "x" * 257, *TEXTS])
    right = st.fixed_dictionaries({"type": st.just("subscribe"), "id": ids, "payload": members()})
    stopped = st.fixed_dictionaries({"type": st.just("complete"), "id": ids})
    pinged = st.fixed_dictionaries(
        {"type": st.sampled_from(["ping", "pong"])}, optional={"payload": st.none() | members()}
    )
    any_ = st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | wrong}, optional={"id": ids | wrong, "payload": members() | wrong, "x": wrong}
    )
    return (right | right | right | stopped | pinged | any_).map(lambda one: json.dumps(one).encode())


def _split(whole: bytes) -> list[bytes]:
    """In three frames, with a ping between two."""
    third = len(whole) // 3
    parts = [(TEXT, whole[:third]), (0, whole[third : 2 * third]), (0, whole[2 * third :])]
    frames = [frame(opcode, part, final=number == 2) for number, (opcode, part) in enumerate(parts)]
    return [frames[0], frame(PING, b"between"), *frames[1:]]


def steps() -> st.SearchStrategy[list[bytes]]:
    """What is sent, one after the other."""
    message = _messages()
    whole = message.map(lambda one: [frame(TEXT, one)])
    odd: st.SearchStrategy[list[bytes]] = st.one_of(
        message.map(_split),
        message.map(lambda one: [frame(BINARY, one)]),
        st.binary(max_size=40).map(lambda one: [frame(TEXT, one)]),
        st.sampled_from(["null", "[]", "1", "{", "NaN", "[" * 20_000, '{"type":"ping","payload":{"a":"\\ud800"}}']).map(
            lambda one: [frame(TEXT, one.encode())]
        ),
        st.sampled_from([PING, PONG]).map(lambda one: [frame(one, b"x" * 125)]),
        st.sampled_from([PING, 3, 11, 0]).map(lambda one: [frame(one, b"x" * 126)]),
        st.sampled_from([1000, 1001, 1005, 1006, 1015, 999, 3000, 4999, 5000]).map(
            lambda one: [frame(CLOSE, struct.pack(">H", one) + b"bye")]
        ),
        st.sampled_from([b"", b"\x03", struct.pack(">H", 1000) + b"\xff"]).map(lambda one: [frame(CLOSE, one)]),
        message.map(lambda one: [frame(TEXT, one, masked=False)]),
        message.map(lambda one: [frame(TEXT, one, reserved=0x40)]),
        st.sampled_from([70_000, 1024 * 1024 + 1]).map(lambda one: [frame(TEXT, b" " * one)]),
        st.just([b"\x81\xff" + b"\xff" * 8]),
        st.just([INIT]),
    )
    some = st.lists(st.integers(0, 7).flatmap(lambda luck: odd if luck == 0 else whole), max_size=6)
    begun = st.integers(0, 9).map(lambda luck: [] if luck == 0 else [INIT])
    return st.tuples(begun, some).map(lambda two: [*two[0], *(one for step in two[1] for one in step)])


@dataclass
class Raw:
    """A socket after its handshake."""

    there: socket.socket
    _buffer: bytearray = field(default_factory=bytearray)

    @classmethod
    def open(cls, port: int) -> "Raw":
        there = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        key = base64.b64encode(os.urandom(16)).decode()
        there.sendall(
            (
                f"GET /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n"
                "connection: upgrade\r\n"
                f"sec-websocket-key: {key}\r\nsec-websocket-version: 13\r\n"
                "sec-websocket-protocol: graphql-transport-ws\r\n\r\n"
            ).encode()
        )
        raw = cls(there)
        while b"\r\n\r\n" not in raw._buffer:
            raw._buffer += there.recv(4096)
        del raw._buffer[: raw._buffer.index(b"\r\n\r\n") + 4]
        return raw

    def send(self, some: list[bytes]) -> None:
        """As far as the other side still listens."""
        try:
            for one in some:
                self.there.sendall(one)
        except (BrokenPipeError, ConnectionResetError):
            return

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Opcode and payload of what comes, until the connection ends."""
        while (head := self._take(2)) is not None:
            size = head[1]
            if size >= 126:
                length = self._take(2 if size == 126 else 8)
                assert length is not None
                size = int.from_bytes(length)
            payload = self._take(size)
            assert payload is not None
            yield head[0] & 0x0F, payload

    def _take(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            try:
                part = self.there.recv(65536)
            except ConnectionResetError:
                return None
            if not part:
                return None
            self._buffer += part
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def message_of(payload: bytes) -> Any:
    return json.loads(payload)
