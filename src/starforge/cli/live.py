"""Follows a subscription over graphql-transport-ws, and goes on after a cut where it was: nothing lost or doubled."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from starforge.cli.answers import Json, data_of, error_of
from starforge.cli.gateway import Gateway
from starforge.cli.outage import Outage, Patience
from starforge.domain.errors import CursorExpired, CursorInvalid, Defect, Outside, StarForgeError, Unauthenticated

OPEN_S = 15
FRAME_BYTES_MAX = 32 * 1024 * 1024
_FORBIDDEN = 4403
_FATAL = frozenset({4400, 4401, 4406, 4409, 4429, 4500, 1002, 1003, 1007, 1008, 1009, 1010})


def _quiet(_: str) -> None: ...


@dataclass(frozen=True)
class Live:
    """Subscriptions of a gateway. `note` is told when a connection was lost and when it is back."""

    gateway: Gateway
    note: Callable[[str], None] = _quiet
    patience: Patience = field(default_factory=Patience)

    async def follow(self, document: str, variables: Json, *, is_last: Callable[[Json], bool]) -> AsyncIterator[Json]:
        """Each change of the document's one subscription, up to the one that is the last.

        Outside if the gateway can't be reached at first, or for too long after a cut.
        """
        place, outage = _Place(dict(variables)), Outage(self.patience, self.note)
        while True:
            try:
                async with aclosing(self._once(document, place)) as changes:
                    async for change in changes:
                        outage.over()
                        place.passed(change)
                        yield change
                        if is_last(change):
                            return
                cut: StarForgeError = Outside("The gateway ended the subscription.")
            except StarForgeError as error:
                cut = error
            place.resume(cut)
            await outage.wait(cut)

    async def _once(self, document: str, place: "_Place") -> AsyncGenerator[Json, None]:
        """Changes until the connection ends; Outside if it is cut."""
        gateway = self.gateway
        try:
            async with connect(
                gateway.url.replace("http", "ws", 1),
                subprotocols=["graphql-transport-ws"],  # type: ignore[list-item]
                open_timeout=OPEN_S,
                ping_interval=None,
                max_size=FRAME_BYTES_MAX,
                proxy=None if gateway.is_local else True,
            ) as socket:
                await _init(socket, gateway, self.patience.silence)
                place.is_begun = True
                payload = {"query": document, "variables": place.variables}
                await _send(socket, type="subscribe", id="1", payload=payload)
                async for payload in _payloads(socket, gateway, self.patience.silence):
                    yield _only_value(data_of(payload, where=gateway.url))
        except ConnectionClosed as closed:
            raise _closed(closed, gateway) from closed
        except InvalidStatus as error:
            raise _not_upgraded(error.response.status_code, gateway) from error
        except (OSError, InvalidHandshake) as error:
            raise gateway.away(error) from error


@dataclass
class _Place:
    """Where a subscription is: the variables to subscribe with next, and whether a gateway ever took us."""

    variables: Json
    is_begun: bool = False

    def passed(self, change: Json) -> None:
        self._after(change["cursor"])

    def resume(self, cut: StarForgeError) -> None:
        """Where to go on; raises the cut if there was nothing yet to cut."""
        if not self.is_begun:
            raise cut
        if isinstance(cut, CursorExpired | CursorInvalid):
            self.variables.pop("after", None)
        elif cut.cursor:
            self._after(cut.cursor)

    def _after(self, cursor: str) -> None:
        self.variables["after"] = cursor
        self.variables.pop("tail", None)


async def _init(socket: ClientConnection, gateway: Gateway, timeout_s: float) -> None:
    payload = {"authorization": gateway.authorization} if gateway.authorization else {}
    await _send(socket, type="connection_init", payload=payload)
    while (await _receive(socket, timeout_s)).get("type") != "connection_ack":
        pass


async def _payloads(socket: ClientConnection, gateway: Gateway, timeout_s: float) -> AsyncIterator[Json]:
    while True:
        message = await _receive(socket, timeout_s)
        match message.get("type"):
            case "next":
                yield message["payload"]
            case "error":
                raise error_of(message["payload"], where=gateway.url)
            case "complete":
                return


async def _receive(socket: ClientConnection, timeout_s: float) -> Json:
    """The next message; a ping is answered on the way."""
    try:
        async with asyncio.timeout(timeout_s):
            message = json.loads(await socket.recv())
    except TimeoutError as error:
        raise Outside(f"The gateway said nothing for {timeout_s:.0f} seconds.") from error
    if message.get("type") == "ping":
        await _send(socket, type="pong")
    return dict(message)


async def _send(socket: ClientConnection, **message: object) -> None:
    await socket.send(json.dumps(message))


def _only_value(data: Json) -> Json:
    (value,) = data.values()
    return dict(value)


def _not_upgraded(status: int, gateway: Gateway) -> StarForgeError:
    if status >= 500 or status == 429:
        return Outside(f"The gateway at {gateway.url} can't be reached (status {status}); try again.")
    return Defect(f"What answers at {gateway.url} is not StarForge (status {status}); check FORGE_URL.")


def _closed(closed: ConnectionClosed, gateway: Gateway) -> StarForgeError:
    code, why = (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")
    if code == _FORBIDDEN:
        return Unauthenticated(
            f"The gateway at {gateway.url} does not take this token; set FORGE_TOKEN to a valid one. ({why})"
        )
    if code in _FATAL:
        return Defect(f"The gateway at {gateway.url} closed the connection for good: {why or code}.")
    return Outside(f"The connection to the gateway was cut ({why or code}).")
