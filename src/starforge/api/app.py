"""The gateway as an ASGI application."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from starforge.adapters.wiring import Parts
from starforge.api.auth import Authority, expiry
from starforge.api.budget import Budget
from starforge.api.context import Context, Services
from starforge.api.feed.hub import Hub
from starforge.api.objects import object_routes
from starforge.api.probes import probe_routes
from starforge.api.schema import make_schema
from starforge.api.stable import is_stable
from starforge.api.transport.app import PATH, graphql
from starforge.api.transport.callers import Callers, Incoming, Keeping
from starforge.api.transport.desk import Desk
from starforge.api.transport.guard import LOOPBACK_HOSTS, guard
from starforge.api.transport.http_protocol import FRONT
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.mutations import RunningMutations
from starforge.api.transport.persisted import load_persisted
from starforge.domain.queries import FeedRow
from starforge.domain.rights import Caller

CANCEL_AGAIN_S = 0.5
_log = logging.getLogger(__name__)
SHARED = frozenset({"job", "jobs", "jobLogs", "events", "health", "capacity"})
"""Subscriptions whose resolvers tell the opening and what comes live apart."""


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


@dataclass(frozen=True)
class Gateway:
    """`asgi` is the application; the rest is for who runs or tests it."""

    asgi: ASGIApp
    services: Services
    desk: Desk[Caller]


def make_gateway(parts: Parts, *, dev: bool = False, limits: TransportLimits | None = None) -> Gateway:
    """The gateway. `dev` lets this machine in without a token, and nobody from elsewhere."""
    late = _Late()
    hub = Hub(StoredFeed(late), parts.hear)
    settings = parts.settings
    budget = Budget(
        maximum=settings.rate_limit_points,
        restore_per_second=settings.rate_limit_per_second,
        clock=time.monotonic,
    )
    services = late.services = Services(
        replace(parts.ports, publish=hub.noting(parts.ports.publish)),
        hub,
        retention_s=settings.feed_retention_s,
        web_url=settings.web_url,
        limits=limits,
        budget=budget,
        ping=parts.ping,
    )
    mutations = RunningMutations()

    def make_context(incoming: Incoming[Caller]) -> Context:
        return Context(incoming.caller, services, datetime.now(UTC), hub.position)

    authority, schema = make_authority(parts, services, dev=dev), make_schema()
    persisted = load_persisted(settings.persisted_manifest, schema, services.limits, only=settings.persisted_only)
    callers = Callers(
        authenticate=authority.authenticate,
        rights=lambda caller: caller.rights,
        key=lambda caller: caller.key,
        expires_at=expiry,
        still_valid=authority.still_valid,
        charge=lambda caller, points: budget.charge(caller, points).told(),
        resolve=persisted.resolve,
        personal=("idempotencyKey",),
    )
    gateway = graphql(
        schema,
        callers,
        make_context=make_context,
        limits=limits,
        mutations=mutations,
        shared=SHARED,
        keeping=Keeping(lambda document, name: is_stable(schema._schema, document, name), hub.settled),
    )
    routes = [*gateway.routes, *probe_routes(services, gateway.desk), Route("/", lambda _: RedirectResponse(PATH))]
    if parts.directory:
        routes += object_routes(parts.directory)
    app = Starlette(
        routes=routes, lifespan=lambda _: _lifespan(hub, services, mutations, authority, gateway.desk, dev=dev)
    )
    asgi = first_at(PATH, gateway.http, app)
    return Gateway(guard(asgi, hosts=LOOPBACK_HOSTS, origins=[]) if dev else asgi, services, gateway.desk)


def first_at(path: str, at_path: ASGIApp, app: ASGIApp) -> ASGIApp:
    """`at_path` for HTTP at exactly `path`, which is what nearly all requests ask for, and `app` for the rest."""

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        await (at_path if scope["type"] == "http" and scope["path"] == path else app)(scope, receive, send)

    return choose


def make_authority(parts: Parts, services: Services, *, dev: bool) -> Authority:
    """Who may ask this gateway; `dev` lets this machine in without a token."""
    token, ports = parts.settings.bootstrap_token, parts.ports
    return Authority(
        ports.store,
        services.thread,
        now=ports.now,
        default_project=ports.fleet.defaults().project,
        bootstrap=token.get_secret_value() if token else None,
        open_on_loopback=dev,
        identities=parts.identities,
    )


@asynccontextmanager
async def _lifespan(
    hub: Hub, services: Services, mutations: RunningMutations, authority: Authority, desk: Desk[Caller], *, dev: bool
) -> AsyncIterator[dict[str, Any]]:
    await hub.start()
    await services.health.look()  # so that health can be told when the database is away later
    delivering = asyncio.create_task(hub.run(), name="hub")
    sweeping = asyncio.create_task(desk.connections.sweep(), name="connections")
    looking = asyncio.create_task(services.health.run(), name="health")
    try:
        yield {} if dev else {FRONT: desk.front}
    finally:
        await _drained(mutations, desk)
        await end(delivering)
        await end(sweeping)
        await end(looking)
        await authority.close()
        services.close()


async def _drained(mutations: RunningMutations, desk: Desk[Caller]) -> None:
    """Waits for those whose clients are gone, as long as the grace lasts."""
    try:
        async with asyncio.timeout_at(desk.grace_over):
            await mutations.drain()
    except TimeoutError:
        _log.error("A mutation did not end in time; whether it was done, its client finds out by sending it again.")


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended: asyncio.wait_for of Python 3.11 loses a cancellation that meets its result."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=CANCEL_AGAIN_S)
