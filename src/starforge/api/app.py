"""The gateway as an ASGI application."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from starforge.adapters.wiring import Parts
from starforge.api.auth import authenticator
from starforge.api.context import Context, Services
from starforge.api.feed.hub import Hub
from starforge.api.objects import object_routes
from starforge.api.schema import make_schema
from starforge.api.transport.app import PATH, graphql_routes
from starforge.api.transport.callers import Incoming
from starforge.api.transport.guard import LOOPBACK_HOSTS, guard
from starforge.api.transport.mutations import RunningMutations
from starforge.domain.errors import StoreUnavailable
from starforge.domain.queries import FeedRow
from starforge.domain.rights import Caller

CANCEL_AGAIN_S = 0.5


class StoredFeed:
    """The feed's table, asked from the gateway's threads."""

    def __init__(self, services: "_Late") -> None:
        self._late = services

    async def bounds(self) -> tuple[int, int]:
        services = self._late.services
        return await services.feed_thread(services.ports.store.feed_bounds)

    async def rows(self, after: int, limit: int) -> Sequence[FeedRow]:
        services = self._late.services
        return await services.feed_thread(services.ports.store.feed, after=after, limit=limit)


class _Late:
    """The services, which need the hub that reads through them."""

    services: Services


def make_app(parts: Parts, *, dev: bool = False) -> ASGIApp:
    """The gateway. `dev` lets this machine in without a token, and nobody from elsewhere."""
    late = _Late()
    hub = Hub(StoredFeed(late), parts.hear)
    services = late.services = Services(parts.ports, hub, retention_s=parts.settings.feed_retention_s)
    mutations = RunningMutations()

    def make_context(incoming: Incoming[Caller]) -> Context:
        return Context(incoming.caller, services, datetime.now(UTC), hub.position)

    token = parts.settings.bootstrap_token
    graphql = graphql_routes(
        make_schema(),
        authenticate=authenticator(token.get_secret_value() if token else None, open_on_loopback=dev),
        make_context=make_context,
        mutations=mutations,
    )
    routes = [*graphql, *_probes(services), Route("/", lambda _: RedirectResponse(PATH))]
    if parts.directory:
        routes += object_routes(parts.directory)
    app = Starlette(routes=routes, lifespan=lambda _: _lifespan(hub, services, mutations))
    app.state.services = services
    return guard(app, hosts=LOOPBACK_HOSTS, origins=[]) if dev else app


@asynccontextmanager
async def _lifespan(hub: Hub, services: Services, mutations: RunningMutations) -> AsyncIterator[None]:
    await hub.start()
    delivering = asyncio.create_task(hub.run(), name="hub")
    try:
        yield
    finally:
        await mutations.drain()
        await end(delivering)
        services.close()


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended: asyncio.wait_for of Python 3.11 loses a cancellation that meets its result."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_AGAIN_S)


def _probes(services: Services) -> list[Route]:
    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive")

    async def ready(_: Request) -> Response:
        try:
            await services.thread(services.ports.store.feed_bounds)
        except StoreUnavailable as outage:
            return PlainTextResponse(outage.message, 503)
        return PlainTextResponse("ready")

    return [Route("/livez", alive), Route("/readyz", ready)]
