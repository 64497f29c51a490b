"""The way to the servers of this machine's playgrounds: each listens on a port of the loopback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx

from starforge.adapters.local.rundir import Phase, RunDir
from starforge.adapters.local.serving import HOST
from starforge.adapters.server_http import asked, client
from starforge.domain.errors import FleetUnavailable
from starforge.domain.names import RunKey
from starforge.domain.playground import Playground
from starforge.domain.playground_door import Door, ServerAnswer, ServerRequest


@asynccontextmanager
async def local_door(directory: Callable[[RunKey], RunDir]) -> AsyncIterator[Door]:
    """The Door of a fleet that has its run directories there."""
    # No connection is kept: a new one costs little here, and a server may end idle ones just when they are used.
    async with client(kept=0) as http:
        yield LocalDoor(http, directory)


class LocalDoor:
    def __init__(self, http: httpx.AsyncClient, directory: Callable[[RunKey], RunDir]) -> None:
        self._http, self._directory = http, directory

    @asynccontextmanager
    async def ask(self, playground: Playground, request: ServerRequest) -> AsyncIterator[ServerAnswer]:
        root = await asyncio.to_thread(self._root, playground)
        async with asked(self._http, root, request, to="The server of the playground") as answer:
            yield answer

    def _root(self, playground: Playground) -> str:
        status = self._directory(playground.key).status()
        if status is None or status.phase is not Phase.RUNNING or status.runner is None or not status.runner.alive:
            raise FleetUnavailable(f"The server of {playground.id} does not run on this machine any more.")
        host, _, port = (status.address or "").rpartition(":")
        if host != HOST or not port.isdecimal():
            raise FleetUnavailable(f"The server of {playground.id} has not said where it listens.")
        return f"http://{HOST}:{port}"
