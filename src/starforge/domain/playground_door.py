"""A request to the server of a playground, made so that it can't go anywhere else, and what comes back."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from starforge.domain.playground import Playground

METHODS = frozenset({"GET", "POST"})
PATH_MAX, QUERY_MAX = 512, 8192
ROOT = "v1"
"""All that is asked of a server lies below it."""
Headers = Sequence[tuple[str, str]]

_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+"
_PATH = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")
_QUERY = re.compile(r"[A-Za-z0-9._~*+%=&-]*")
_NAME = re.compile(r"[a-z0-9-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True)
class ServerRequest:
    """What is asked of a server, below /v1 of its one port. ValueError for anything that could mean another place.

    `path` has plain segments, such as `chat/completions`; `query` is encoded; names of headers are in lower case.
    """

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"{self.method!r} is not a method that playgrounds take")
        if not is_plain(self.path):
            raise ValueError(f"{self.path!r} is not a plain path")
        if not _QUERY.fullmatch(self.query) or len(self.query) > QUERY_MAX:
            raise ValueError("the query is not encoded, or is too long")
        if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in self.headers):
            raise ValueError("a header is not one")

    @property
    def target(self) -> str:
        """Path and query, to be put behind the root of the server."""
        return f"{ROOT}/{self.path}?{self.query}" if self.query else f"{ROOT}/{self.path}"


def is_plain(path: str) -> bool:
    """Whether it has segments of unreserved characters alone, none of them empty, `.` or `..`."""
    return len(path) <= PATH_MAX and _PATH.fullmatch(path) is not None


class ServerAnswer(Protocol):
    """An answer of which the head is there. Names of headers are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. FleetUnavailable, a sentence, if it breaks off."""
        ...


class Door(Protocol):
    """The way to the servers of a fleet's playgrounds; it belongs to one event loop."""

    def ask(self, playground: Playground, request: ServerRequest) -> AbstractAsyncContextManager[ServerAnswer]:
        """The answer, which is closed with the block, and the request with it if it is not over.

        FleetUnavailable, a sentence, if the server can't be reached; what the server itself says is an answer.
        """
        ...
