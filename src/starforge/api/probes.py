"""/livez and /readyz for whoever places traffic, and /metrics for Prometheus."""

import asyncio
from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from starforge.api.context import Services
from starforge.api.metrics import GatewayMetrics
from starforge.api.scalars import show_time
from starforge.api.transport.desk import Desk
from starforge.domain.errors import StoreUnavailable
from starforge.domain.health import CommandQueue, Health, HealthCheck
from starforge.domain.rights import Caller

ANSWER_S = 3.0
SILENT_S = 15.0
"""The hub reads the table every second: when it has not for so long, subscribers here hear of nothing."""


def probe_routes(services: Services, desk: Desk[Caller]) -> list[Route]:
    """/livez is answered while the event loop turns. /readyz has 200 while this gateway can do its work: the database
    answers, the feed is read, and it is not about to end; else 503, with a sentence for each part. It tells of health
    what is known already, which says nothing of this gateway: without a cluster it is as ready as every other one."""
    registry = CollectorRegistry()
    registry.register(GatewayMetrics(services.hub, desk, lambda: _commands(services)))

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive")

    async def ready(_: Request) -> Response:
        problems = await _problems(services, desk)
        known = services.health.known
        body = {"ready": not problems, "problems": problems, "health": _told(known.health) if known else None}
        return JSONResponse(body, 503 if problems else 200)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route("/livez", alive), Route("/readyz", ready), Route("/metrics", metrics)]


def _commands(services: Services) -> CommandQueue | None:
    known = services.health.known
    return known.health.commands if known else None


async def _problems(services: Services, desk: Desk[Caller]) -> list[str]:
    problems = []
    if desk.draining.is_set():
        problems.append("This gateway is about to end.")
    try:
        async with asyncio.timeout(ANSWER_S):
            await services.thread(services.ports.store.feed_bounds)
    except StoreUnavailable as outage:
        problems.append(outage.message)
    except TimeoutError:
        problems.append(f"The database gave no answer within {ANSWER_S:g} seconds.")
    silent_s = services.hub.silent_s
    if silent_s > SILENT_S:
        problems.append(f"The feed was not read for {silent_s:.0f} seconds, so subscribers hear of nothing.")
    return problems


def _told(health: Health) -> Mapping[str, object]:
    return {
        "status": health.status,
        "message": health.message,
        "checkedAt": show_time(health.checked_at),
        "checks": _checks(health.checks),
        "fleets": {
            fleet.fleet: {
                "status": fleet.status,
                "message": fleet.message,
                "checks": _checks(fleet.checks),
                "rayJobApiVersion": fleet.rayjob_api_version,
                "observerLagSeconds": fleet.observer_lag_seconds,
            }
            for fleet in health.fleets
        },
        "commands": {
            "due": health.commands.due,
            "oldestDueAt": show_time(health.commands.oldest_due_at) if health.commands.oldest_due_at else None,
            "parked": health.commands.parked,
        },
    }


def _checks(checks: Iterable[HealthCheck]) -> Mapping[str, str]:
    """The status of each kind."""
    return {check.kind.value: check.status.value for check in checks}
