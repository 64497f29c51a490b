"""What the transport asks of whoever knows tokens, and what it tells whoever makes contexts."""

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from graphql import DocumentNode

from starforge.api.transport.encoding import encode_sorted
from starforge.api.transport.request import GraphQLRequest

CallerT = TypeVar("CallerT")


@dataclass(frozen=True)
class Credentials:
    """Who somebody claims to be.

    `authorization` is the value of the HTTP header, or of `authorization` in the payload of `connection_init`, for
    example `Bearer …`; `client_host` is the address the connection comes from, none for a Unix socket.
    """

    authorization: str | None = field(repr=False)
    client_host: str | None


class Transport(StrEnum):
    HTTP = "http"
    SSE = "sse"
    WEBSOCKET = "websocket"


@dataclass(frozen=True, slots=True)
class Incoming(Generic[CallerT]):
    """One operation's origin."""

    caller: CallerT
    transport: Transport


Authenticate = Callable[[Credentials], Awaitable[CallerT]]
"""Raises an error of StarForge's tree, usually Unauthenticated or Forbidden."""

MakeContext = Callable[[Incoming[CallerT]], Any]
"""Called once per operation, never shared between two."""

CostTold = Mapping[str, int]
"""`extensions.cost` of an answer."""


def _itself(caller: Any) -> Hashable:
    found: Hashable = caller
    return found


def _never(caller: Any) -> float | None:
    return None


async def _all(callers: Collection[Any]) -> Collection[Any]:
    return callers


def _free(caller: Any, points: int) -> CostTold | None:
    return None


def _as_it_is(request: GraphQLRequest) -> GraphQLRequest:
    return request


@dataclass(frozen=True)
class Callers(Generic[CallerT]):
    """What is to be known of callers.

    `rights` are equal for two who are shown the same, `key` tells one from another, `expires_at` is when they are no
    longer who they are (seconds since the epoch), and `still_valid` gives those of many who still are. `charge` takes
    the points that an operation costs, or raises. `resolve` puts the document in for its id, or raises. Where one of
    the words `personal` is in a request, its answer is for that caller alone.
    """

    authenticate: Authenticate[CallerT]
    rights: Callable[[CallerT], Hashable] = _itself
    key: Callable[[CallerT], Hashable] = _itself
    expires_at: Callable[[CallerT], float | None] = _never
    still_valid: Callable[[Collection[CallerT]], Awaitable[Collection[CallerT]]] = _all
    charge: Callable[[CallerT, int], CostTold | None] = _free
    resolve: Callable[[GraphQLRequest], GraphQLRequest] = _as_it_is
    personal: tuple[str, ...] = ()

    def sharing(self, caller: CallerT, request: GraphQLRequest) -> Hashable:
        """Equal for two callers who may be sent the very same bytes."""
        asked = request.query + encode_sorted(request.variables or {})
        if any(word in asked for word in self.personal):
            return self.rights(caller), self.key(caller)
        return self.rights(caller)


@dataclass(frozen=True)
class Keeping:
    """Which answers may be kept: those of documents that `is_stable` says yes to, while `position` stays what it is
    (None: none may be served right now)."""

    is_stable: Callable[[DocumentNode, str | None], bool]
    position: Callable[[], int | None]


@runtime_checkable
class RenewedPerEvent(Protocol):
    """A context that is told before every event of a subscription, so that it drops its dataloaders: what one has
    loaded for the last event may be old for the next."""

    def renew(self) -> None: ...
