"""What clients are told of playgrounds: by queries, by mutations, and live."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from starforge.api.context import Context, Services
from starforge.api.enums import ChangeKind
from starforge.api.feed.hub import Hub
from starforge.api.playgrounds.subscriptions import _Playgrounds
from starforge.api.schema import make_schema
from starforge.api.transport.source import Source
from starforge.domain.actions.stop_playground import stop_playground
from starforge.domain.actions.use_playground import Use, note_use
from starforge.domain.job import Actor, ActorKind
from starforge.domain.queries import FeedKind, PlaygroundFilter
from starforge.domain.rights import Caller, Role
from tests.unit.actions.conftest import empty, new_world, store, world
from tests.unit.actions.playing import DRAFT, Players
from tests.unit.actions.world import ANN, World
from tests.unit.api.feeding import Ears
from tests.unit.api.test_rights import StoreFeed

__all__ = ["empty", "new_world", "store", "world"]
pytestmark = pytest.mark.anyio
SCHEMA = make_schema()
PAGE = """query($id: ID!) { playground(id: $id) {
    id name state ended model servedModelName series gpus image args env { name value } endpoint expiresAt
    lastUsedAt webUrl
    usage { requests activeRequests promptTokens completionTokens firstTokenSeconds } fromJob { id }
    reason { code } clocks { kind state source } observation { freshness } allowedActions createdBy { name }
    pods { name role attempt pool } logSources { key attempt } logs(last: 10) { nodes { number text } }
    events(last: 50) { nodes { attempt workload { id } fleet ... on PlaygroundStateEvent { playgroundState } } }
} }"""
CREATE = """mutation($input: CreatePlaygroundInput!) { createPlayground(input: $input) {
    status playground { id } userErrors { code field } } }"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def context(world: World) -> AsyncIterator[Context]:
    hub = Hub(StoreFeed(world.sql), Ears().hear)
    await hub.start()
    services = Services(world.ports, hub, retention_s=60, web_url="https://w/app", address="https://forge/")
    yield Context(Caller(Actor("me", ActorKind.TOKEN), Role.ADMIN, "default"), services, world.clock(), hub.position)
    services.close()


async def ask(context: Context, document: str, **variables: Any) -> dict[str, Any]:
    context.renew()
    result = await SCHEMA.execute(document, variable_values=variables, context_value=context)
    assert result.errors is None
    assert result.data is not None
    return result.data


async def test_a_page_shows_all_of_it(world: World, context: Context) -> None:
    players = Players(world)
    id_ = players.ready()
    players.say(id_, "one", "two")
    note_use(world.ports, id_, Use("gateway", 1, 2, 3, 4, (0.1, 0.5, 0.3)))
    shown = (await ask(context, PAGE, id=id_))["playground"]
    pod = players.get(id_).pod_name
    assert shown["endpoint"] == f"https://forge/playgrounds/{id_}/v1"
    assert shown["webUrl"] == f"https://w/app/playgrounds/{id_}"
    assert shown["usage"] == {
        "requests": 2, "activeRequests": 1, "promptTokens": 3, "completionTokens": 4, "firstTokenSeconds": 0.3,
    }  # fmt: skip
    assert shown["logs"]["nodes"] == [{"number": 1, "text": "one"}, {"number": 2, "text": "two"}]
    assert shown["pods"] == [{"name": pod, "role": "PLAYGROUND", "attempt": None, "pool": None}]
    assert shown["logSources"] == [{"key": f"pod/{pod}/vllm", "attempt": None}]
    assert shown["observation"] == {"freshness": "LIVE"}
    events = shown["events"]["nodes"]
    assert {(one["attempt"], one["workload"]["id"], one["fleet"]) for one in events} == {(None, id_, "home")}
    assert [one["playgroundState"] for one in events if "playgroundState" in one] == ["STARTING", "READY"]


async def test_what_is_wrong_is_told_by_the_fields_of_the_input(world: World, context: Context) -> None:
    Players(world)
    wrong = {"name": "x", "series": "h200", "gpus": -1, "model": "/etc/x", "args": ["--port=1"], "fromJob": "job-none"}
    refused = (await ask(context, CREATE, input=wrong))["createPlayground"]
    assert (refused["status"], refused["playground"]) == ("REFUSED", None)
    assert refused["userErrors"] == [{"code": "NOT_FOUND", "field": ["input", "fromJob"]}]
    del wrong["fromJob"]
    refused = (await ask(context, CREATE, input=wrong))["createPlayground"]
    fields = {(one["code"], *one["field"]) for one in refused["userErrors"]}
    assert fields == {
        ("INVALID", "input", "model"), ("RESERVED", "input", "args", "0"), ("OUT_OF_RANGE", "input", "gpus"),
    }  # fmt: skip


async def test_a_key_that_was_used_for_another_body_names_who_has_it(world: World, context: Context) -> None:
    Players(world)
    given = {"name": "x", "series": "h200", "gpus": 1, "model": "a/b", "idempotencyKey": "key"}
    made = (await ask(context, CREATE, input=given))["createPlayground"]
    again = (await ask(context, CREATE, input=given))["createPlayground"]
    assert (made["status"], again["status"], again["playground"]) == ("CREATED", "REPLAYED", made["playground"])
    other = (await ask(context, CREATE, input=given | {"gpus": 2}))["createPlayground"]
    assert (other["status"], other["userErrors"][0]["code"]) == ("REFUSED", "CONFLICT")


async def test_one_that_leaves_a_filter_is_told_as_removed(world: World, context: Context) -> None:
    players = Players(world)
    one, other = players.ready(), players.ready(replace(DRAFT, project="else"))
    teller = _Playgrounds(context, PlaygroundFilter(active=True, projects=("default",)), Source(), resumed=False)
    first = await teller.snapshot(0)
    assert [telling.change.playground_id for telling in first] == [one]
    seen = world.sql.feed_bounds()[1]
    for id_ in (one, other):
        stop_playground(world.ports, id_, ANN)
    rows = [row for row in world.feed() if row.position > seen and teller.wants(row)]
    assert {row.kind for row in rows} == {FeedKind.PLAYGROUND}
    (told,) = await teller.tell(rows)
    assert (told.change.kind, told.change.playground_id) == (ChangeKind.REMOVED, one)
    assert await teller.tell(rows) == []


async def test_rows_that_a_snapshot_holds_already_are_not_told_again(world: World, context: Context) -> None:
    players = Players(world)
    players.ready()
    teller = _Playgrounds(context, PlaygroundFilter(), Source(), resumed=False)
    await teller.snapshot(0)
    rows = [row for row in world.feed() if teller.wants(row)]
    assert len(rows) > 1
    assert await teller.tell(rows) == []
