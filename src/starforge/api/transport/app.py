"""Puts the transport together: GraphQL over HTTP and WebSocket at one address."""

from starlette.routing import BaseRoute, Route, WebSocketRoute

from starforge.api.transport.callers import Authenticate, CallerT, MakeContext
from starforge.api.transport.execution import Executor
from starforge.api.transport.http import HttpEndpoint
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.mutations import RunningMutations
from starforge.api.transport.schema import GatewaySchema
from starforge.api.transport.websocket import WebSocketEndpoint

PATH = "/graphql"


def graphql_routes(
    schema: GatewaySchema,
    *,
    authenticate: Authenticate[CallerT],
    make_context: MakeContext[CallerT],
    limits: TransportLimits | None = None,
    mutations: RunningMutations | None = None,
    console: bool = True,
) -> list[BaseRoute]:
    """The routes of `PATH`.

    `authenticate` is asked once per HTTP request and once per WebSocket; `make_context` once per operation. Give
    `mutations` and drain it in the application's shutdown, so that none is cut off when the process ends. `console`
    serves browsers a page to try things on.
    """
    bounds = limits or TransportLimits()
    executor = Executor(schema, make_context=make_context, limits=bounds, mutations=mutations or RunningMutations())
    http = HttpEndpoint(executor=executor, authenticate=authenticate, limits=bounds, console=console)
    websocket = WebSocketEndpoint(executor=executor, authenticate=authenticate, limits=bounds)
    return [Route(PATH, http), WebSocketRoute(PATH, websocket)]
