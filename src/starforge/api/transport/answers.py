"""Answers that are kept as bytes for as long as they are true.

Of a query all of whose fields change with the feed alone, the answer is a function of document, variables, rights and
feed position: it is executed once for each position, and its bytes are served to everybody who asks the same.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

KEPT = 2_000
KEPT_BYTES = 64 * 1024 * 1024
KEPT_FOR_S = 5.0
"""A change that nothing tells of, as its teller died in the very second, is shown after so long."""

Position = int
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Answer:
    """`data` is the JSON object of the response without its last brace, so that `extensions` can be added."""

    data: bytes
    etag: str

    @classmethod
    def of(cls, response: bytes) -> "Answer":
        """`response` is `{"data":…}` and nothing else."""
        return cls(response[:-1], f'W/"{hashlib.sha256(response).hexdigest()[:32]}"')

    def body(self, extensions: bytes | None) -> bytes:
        return self.data + (b',"extensions":' + extensions + b"}" if extensions else b"}")


class Recent(Generic[Key, Value]):
    """What was used last, bounded in number and size; the least recently used goes first."""

    def __init__(self, *, most: int, most_bytes: int, size: Callable[[Value], int]) -> None:
        self._most, self._most_bytes, self._size_of = most, most_bytes, size
        self._known: OrderedDict[Key, Value] = OrderedDict()
        self._bytes = 0

    def get(self, key: Key) -> Value | None:
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
        return found

    def put(self, key: Key, value: Value) -> None:
        self.drop(key)
        self._known[key] = value
        self._bytes += self._size_of(value)
        while len(self._known) > self._most or (self._bytes > self._most_bytes and len(self._known) > 1):
            self._bytes -= self._size_of(self._known.popitem(last=False)[1])

    def drop(self, key: Key) -> None:
        old = self._known.pop(key, None)
        if old is not None:
            self._bytes -= self._size_of(old)

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True, slots=True)
class _Kept:
    position: Position
    until: float
    answer: Answer


class Answers:
    """`position` tells where the feed stands here, or None while this gateway has not heard of all it wrote itself."""

    def __init__(self, position: Callable[[], Position | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._position, self._clock = position, clock
        self._kept: Recent[Hashable, _Kept] = Recent(
            most=KEPT, most_bytes=KEPT_BYTES, size=lambda kept: len(kept.answer.data)
        )
        self.served = 0

    def position(self) -> Position | None:
        return self._position()

    def get(self, key: Hashable) -> Answer | None:
        """The answer to `key`, if it is still true."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.position != self._position() or self._clock() >= kept.until:
            self._kept.drop(key)
            return None
        self.served += 1
        return kept.answer

    def put(self, key: Hashable, answer: Answer, *, since: Position | None) -> None:
        """Keep an answer that was begun when the feed stood at `since`, unless it has moved meanwhile."""
        if since is not None and since == self._position():
            self._kept.put(key, _Kept(since, self._clock() + KEPT_FOR_S, answer))
