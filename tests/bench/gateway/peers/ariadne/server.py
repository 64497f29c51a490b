"""The subset on ariadne: one listener on Redis, a queue per subscriber, rows in memory."""

import asyncio
import hmac
import itertools
import json
import os
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from ariadne import MutationType, QueryType, SubscriptionType, make_executable_schema
from ariadne.asgi import GraphQL
from ariadne.asgi.handlers import GraphQLTransportWSHandler
from ariadne.exceptions import WebSocketConnectionError
from redis.asyncio import Redis
from redis.exceptions import RedisError
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Mount

EXPECTED = f"Bearer {os.environ['TOKEN']}"
ROWS = json.loads(Path(os.environ["ROWS"]).read_text())
query, mutation, subscription = QueryType(), MutationType(), SubscriptionType()
queues: dict[str, set[asyncio.Queue[dict[str, Any]]]] = defaultdict(set)
submitted: dict[str, dict[str, Any]] = {}
numbers = itertools.count(1)


def allowed(authorization: str | None) -> bool:
    return hmac.compare_digest(authorization or "", EXPECTED)


@query.field("jobs")
def jobs(_: Any, __: Any, first: int, filter: dict[str, Any] | None = None) -> dict[str, Any]:  # noqa: A002
    before = (filter or {}).get("createdBefore")
    return {"nodes": [row for row in ROWS if before is None or row["createdAt"] < before][:first]}


@mutation.field("submitJob")
def submit_job(_: Any, __: Any, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    job = {**ROWS[0], "id": f"job-{next(numbers):020}", "name": input["spec"]["name"], "state": "SUBMITTED"}
    submitted[job["id"]] = job
    return {"status": "CREATED", "job": job}


@subscription.source("job")
async def job_source(_: Any, __: Any, id: str, after: str | None = None) -> AsyncGenerator[dict[str, Any], None]:  # noqa: A002
    queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    queues[id].add(queue)
    try:
        while True:
            yield await queue.get()
    finally:
        queues[id].discard(queue)


@subscription.field("job")
def job(change: dict[str, Any], _: Any, id: str, after: str | None = None) -> dict[str, Any]:  # noqa: A002
    return change


async def listen() -> None:
    """Hand out what Redis says; connect again when it went away."""
    while True:
        try:
            async with Redis.from_url(os.environ["REDIS_URL"]) as redis, redis.pubsub() as pubsub:
                await pubsub.subscribe(os.environ["CHANNEL"])
                async for message in pubsub.listen():
                    if message["type"] == "message":
                        change = json.loads(message["data"])
                        for queue in queues[change["job"]["id"]]:
                            queue.put_nowait(change)
        except RedisError:
            await asyncio.sleep(0.2)


@asynccontextmanager
async def lifespan(_: Starlette) -> Any:
    task = asyncio.create_task(listen())
    yield
    task.cancel()


def on_connect(_: Any, payload: Any) -> None:
    if not allowed((payload or {}).get("authorization")):
        raise WebSocketConnectionError({"message": "who are you?"})


class Guarded(GraphQL):
    async def handle_request(self, request: HTTPConnection) -> Response:
        if not allowed(request.headers.get("authorization")):
            return Response(status_code=401)
        return await super().handle_request(request)


sdl = Path(os.environ["SDL"]).read_text()
graphql = Guarded(
    make_executable_schema(sdl, query, mutation, subscription),
    websocket_handler=GraphQLTransportWSHandler(on_connect=on_connect),
)
app = Starlette(routes=[Mount("/graphql", graphql)], lifespan=lifespan)

if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(os.environ["PORT"]),
        loop="uvloop",
        access_log=False,
        log_level="warning",
        ws_per_message_deflate=False,
    )
