"""/livez and /readyz for whoever places traffic, and /metrics for Prometheus."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from starforge.api.context import Services
from starforge.api.metrics import GatewayMetrics
from starforge.api.transport.desk import Desk
from starforge.domain.errors import StoreUnavailable
from starforge.domain.rights import Caller

SILENT_S = 15.0
"""The hub reads the table every second: when it has not for so long, subscribers here hear of nothing."""


def probe_routes(services: Services, desk: Desk[Caller]) -> list[Route]:
    """/livez is answered while the event loop turns. /readyz has 200 while this gateway can do its work: the database
    answers, the feed is read, and it is not about to end; else 503, with a sentence for each part."""
    registry = CollectorRegistry()
    registry.register(GatewayMetrics(services.hub, desk))

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive")

    async def ready(_: Request) -> Response:
        problems = await _problems(services, desk)
        return JSONResponse({"ready": not problems, "problems": problems}, 503 if problems else 200)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route("/livez", alive), Route("/readyz", ready), Route("/metrics", metrics)]


async def _problems(services: Services, desk: Desk[Caller]) -> list[str]:
    problems = []
    if desk.draining.is_set():
        problems.append("This gateway is about to end.")
    try:
        await services.thread(services.ports.store.feed_bounds)
    except StoreUnavailable as outage:
        problems.append(outage.message)
    silent_s = services.hub.silent_s
    if silent_s > SILENT_S:
        problems.append(f"The feed was not read for {silent_s:.0f} seconds, so subscribers hear of nothing.")
    return problems
