"""Puts the transport together: GraphQL over HTTP, event streams and WebSocket at one address."""

from dataclasses import dataclass
from typing import Any

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from starforge.api.transport.callers import Callers, CallerT, Keeping, MakeContext
from starforge.api.transport.desk import Desk
from starforge.api.transport.execution import Executor
from starforge.api.transport.http import HttpEndpoint
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.mutations import RunningMutations
from starforge.api.transport.schema import GatewaySchema
from starforge.api.transport.websocket import WebSocketEndpoint

PATH = "/graphql"


@dataclass(frozen=True)
class GraphQL:
    """`routes` at `PATH`, and `http` for whoever wants to be there without a router; run `desk.connections.sweep()` beside them, as it keeps connections alive and ends them."""

    routes: list[BaseRoute]
    http: ASGIApp
    desk: Desk[Any]


def graphql(
    schema: GatewaySchema,
    callers: Callers[CallerT],
    *,
    make_context: MakeContext[CallerT],
    limits: TransportLimits | None = None,
    mutations: RunningMutations | None = None,
    shared: frozenset[str] = frozenset(),
    keeping: Keeping | None = None,
    console: bool = True,
) -> GraphQL:
    """`make_context` is called once per operation. Give `mutations` and drain it in the application's shutdown, so
    that none is cut off when the process ends. `shared` names the subscriptions that tell of sources
    (`transport/source.py`), `keeping` says which answers may be kept. `console` serves browsers a page to try things on.
    """
    bounds = limits or TransportLimits()
    running = mutations or RunningMutations()
    executor = Executor(schema, callers, make_context=make_context, limits=bounds, mutations=running, keeping=keeping)
    desk = Desk(executor, callers, bounds, shared=shared)
    http, websocket = HttpEndpoint(desk, console=console), WebSocketEndpoint(desk)
    return GraphQL([Route(PATH, http), WebSocketRoute(PATH, websocket)], http, desk)
