"""What the transport asks of whoever knows tokens, and what it tells whoever makes contexts."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

CallerT = TypeVar("CallerT")


@dataclass(frozen=True)
class Credentials:
    """Who somebody claims to be.

    `authorization` is the value of the HTTP header, or of `authorization` in the payload of `connection_init`, for
    example `Bearer …`; `client_host` is the address the connection comes from, none for a Unix socket.
    """

    authorization: str | None
    client_host: str | None


class Transport(StrEnum):
    HTTP = "http"
    WEBSOCKET = "websocket"


@dataclass(frozen=True)
class Incoming(Generic[CallerT]):
    """One operation's origin; header names are in lower case."""

    caller: CallerT
    transport: Transport
    headers: Mapping[str, str]


Authenticate = Callable[[Credentials], Awaitable[CallerT]]
"""Raises an error of StarForge's tree, usually Unauthenticated or Forbidden."""

MakeContext = Callable[[Incoming[CallerT]], Any]
"""Called once per operation, never shared between two."""


@runtime_checkable
class RenewedPerEvent(Protocol):
    """A context that is told before every event of a subscription, so that it drops its dataloaders: what one has
    loaded for the last event may be old for the next."""

    def renew(self) -> None: ...
