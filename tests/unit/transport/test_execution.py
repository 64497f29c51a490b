import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import strawberry
from strawberry.extensions import SchemaExtension

from starforge.api.transport.callers import Callers, Credentials, Incoming, Transport
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.execution import Executor
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.mutations import RunningMutations
from starforge.api.transport.request import GraphQLRequest
from starforge.api.transport.schema import GatewaySchema
from starforge.api.transport.source import Source

INCOMING = Incoming("ada", Transport.HTTP)


@strawberry.type
class Query:
    @strawberry.field
    def name(self) -> str:
        return "x"


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def names(self) -> AsyncIterator[str]:
        yield "x"


class Broken(SchemaExtension):
    def on_operation(self) -> Iterator[None]:
        raise ValueError("hunter2")
        yield


class Costs(SchemaExtension):
    def get_results(self) -> dict[str, Any]:
        return {"cost": 1}


async def nobody(_: Credentials) -> str:
    raise AssertionError("nobody asks")


def executor(*extensions: type[SchemaExtension], make_context: Any = lambda _: None) -> Executor[str]:
    schema = GatewaySchema(query=Query, subscription=Subscription, extensions=extensions)
    limits, mutations = TransportLimits(), RunningMutations()
    return Executor(schema, Callers(nobody), make_context=make_context, limits=limits, mutations=mutations)


async def run(tried: Executor[str], query: str) -> list[dict[str, Any]]:
    operation = await tried.prepare(GraphQLRequest(query), INCOMING.caller)
    if query.startswith("subscription"):
        return [response async for response in tried.stream(operation, INCOMING, Source())]
    return [json.loads(await tried.answer(operation, INCOMING))]


def broken_context(_: Incoming[str]) -> None:
    raise ValueError("hunter2")


@pytest.mark.parametrize("query", ["{name}", "subscription {names}"])
@pytest.mark.parametrize("tried", [executor(Broken), executor(make_context=broken_context)], ids=["hook", "context"])
def test_what_breaks_around_the_operation_is_a_masked_error(
    tried: Executor[str], query: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(run(tried, query))
    assert refused.value.code is ErrorCode.INTERNAL_SERVER_ERROR
    assert "hunter2" not in repr(refused.value.body())
    assert "hunter2" in caplog.text


@pytest.mark.parametrize("query", ["{name}", "subscription {name: names}"])
def test_extensions_of_the_result_reach_the_client(query: str) -> None:
    assert asyncio.run(run(executor(Costs), query)) == [{"data": {"name": "x"}, "extensions": {"cost": 1}}]
