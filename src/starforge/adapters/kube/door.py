"""The way to the servers of playgrounds: the API server's proxy to the one port of each Pod, and to nothing else."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
from kubernetes.client import Configuration

from starforge.adapters.kube.client import KubeApi, Shown
from starforge.adapters.kube.dialing import proxy_of, tls_of
from starforge.adapters.kube.errors import UNREACHABLE, short
from starforge.adapters.kube.passing import Peeked, peeked
from starforge.adapters.kube.paths import Paths
from starforge.adapters.server_http import HttpAnswer, asked, client
from starforge.domain.errors import FleetUnavailable
from starforge.domain.playground import PORT, Playground
from starforge.domain.playground_door import Door, ServerAnswer, ServerRequest

_POD = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_TO = "The Kubernetes API, which is the way to the playground,"


@asynccontextmanager
async def kube_door(api: KubeApi, namespace: str) -> AsyncIterator[Door]:
    """The Door of a cluster."""
    door = KubeDoor(api, namespace)
    try:
        yield door
    finally:
        await door.close()


@dataclass(eq=False)
class _Line:
    """Connections that were made with one configuration, and how many requests use them."""

    configuration: Configuration
    http: httpx.AsyncClient
    users: int = 0


class KubeDoor:
    """Every request shows the credentials as they are then; a 401 has them read again, and it is asked once more."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api, self._paths = api, Paths(namespace)
        self._line: _Line | None = None

    @asynccontextmanager
    async def ask(self, playground: Playground, request: ServerRequest) -> AsyncIterator[ServerAnswer]:
        if not _POD.fullmatch(playground.pod_name):
            raise ValueError(f"{playground.pod_name!r} is not the name of a Pod")
        shown = await self._shown(self._paths.pod_server(playground.pod_name, PORT))
        async with AsyncExitStack() as asking:
            answer = await self._peeked(asking, shown, request)
            if answer.is_unauthorized and await asyncio.to_thread(self._api.renew, shown.credentials):
                await asking.aclose()
                shown = await self._shown(self._paths.pod_server(playground.pod_name, PORT))
                answer = await self._peeked(asking, shown, request)
            if answer.problem:
                raise FleetUnavailable(answer.problem)
            yield answer

    async def close(self) -> None:
        if self._line:
            await self._line.http.aclose()

    async def _shown(self, root: str) -> Shown:
        """In a thread, as a kubeconfig may have a program that is run for it."""
        try:
            return await asyncio.to_thread(self._api.shown, root, accept=None)
        except UNREACHABLE as error:
            raise FleetUnavailable(f"{_TO} can't be asked: {short(error)}.") from error

    async def _peeked(self, asking: AsyncExitStack, shown: Shown, request: ServerRequest) -> Peeked:
        return await peeked(await asking.enter_async_context(self._asked(shown, request)))

    @asynccontextmanager
    async def _asked(self, shown: Shown, request: ServerRequest) -> AsyncIterator[HttpAnswer]:
        ours = [(name.lower(), text) for name, text in shown.headers.items() if name.lower() == "authorization"]
        server_name = shown.configuration.tls_server_name or None
        async with (
            self._on_a_line(shown.configuration) as http,
            asked(http, shown.url, request, to=_TO, headers=ours, server_name=server_name) as answer,
        ):
            yield answer

    @asynccontextmanager
    async def _on_a_line(self, configuration: Configuration) -> AsyncIterator[httpx.AsyncClient]:
        """The connections of a configuration; those of one that is over are closed with their last request."""
        before, line = self._line, self._line
        if line is None or line.configuration is not configuration:
            line = self._line = _Line(configuration, _client(configuration))
            if before and not before.users:
                await before.http.aclose()
        line.users += 1
        try:
            yield line.http
        finally:
            line.users -= 1
            if line is not self._line and not line.users:
                await line.http.aclose()


def _client(configuration: Configuration) -> httpx.AsyncClient:
    tls, proxy = tls_of(configuration), proxy_of(configuration)
    if configuration.assert_hostname is False:
        tls.check_hostname = False
    return client(tls=tls, proxy=str(proxy) if proxy else None)
