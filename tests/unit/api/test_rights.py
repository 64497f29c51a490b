"""Every root field of the schema, asked by every role about its own project and about another one."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from strawberry.types import ExecutionResult

from starforge.adapters.store import SqlStore, migrate
from starforge.api.context import Context, Services
from starforge.api.cursors import feed_cursor
from starforge.api.feed.hub import Hub
from starforge.api.schema import make_schema
from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView, Room
from starforge.domain.changes import Changes, NodesWrite
from starforge.domain.errors import StarForgeError
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import JobId
from starforge.domain.queries import EventFilter, FeedRow, Window
from starforge.domain.rights import Caller, Role
from tests.unit.actions.world import ANN, DRAFT, World
from tests.unit.api.feeding import Ears

pytestmark = pytest.mark.anyio
SCHEMA = make_schema()
OWN, OTHER = "vision", "speech"
ABSENT = "absent"
DIGEST = "a" * 64


class StoreFeed:
    """The feed of a world, as a hub asks for it."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    async def bounds(self) -> tuple[int, int]:
        return self._store.feed_bounds()

    async def rows(self, after: int, limit: int) -> Sequence[FeedRow]:
        return self._store.feed(after=after, limit=limit)


@dataclass
class Place:
    """What a project has: variables of every document below."""

    job: str
    capsule: str
    event: str
    pod: str
    project: str

    @property
    def variables(self) -> dict[str, Any]:
        log = f"log.{self.job}.1.driver"
        return {
            "job": self.job, "capsule": f"capsule.{self.capsule}", "event": self.event, "pod": self.pod, "log": log,
            "attempt": f"attempt.{self.job}.1", "project": self.project,
        }  # fmt: skip

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts of which an answer has one if it tells of the project."""
        return self.job, self.capsule, self.event, json.dumps(self.project)


NOWHERE = Place("job-absent", "0" * 64, "event-absent", "pod.job-absent.1.x", ABSENT)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory: Path = tmp_path_factory.mktemp("rights")
    url = f"sqlite:///{directory}/store.db"
    migrate(url)
    store = SqlStore(url)
    yield World(directory, store)
    store.close()


@pytest.fixture(scope="module")
def places(world: World) -> dict[str, Place]:
    """A job that runs in each of the projects; the last event is of our own."""
    jobs = {project: world.running(replace(DRAFT, name=f"in-{project}", project=project)) for project in (OTHER, OWN)}
    for job in jobs.values():
        world.say(job, f"printed by {job}")
    cancel(world.ports, jobs[OWN], Wish(ANN))
    hold_gpus(world, *jobs.values())
    for project in jobs:
        world.pending(replace(DRAFT, name=f"waits-in-{project}", project=project))
    return {project: place_of(world, job, project) for project, job in jobs.items()} | {ABSENT: NOWHERE}


def place_of(world: World, job: JobId, project: str) -> Place:
    capsule = world.job(job).capsule
    assert capsule is not None
    return Place(job, capsule, world.entries(job)[0].id, f"pod.{job}.1.{world.pods(job)[0].uid}", project)


def hold_gpus(world: World, *jobs: JobId) -> None:
    """A node that they share with a foreign Pod."""
    one = Room(gpus=1)
    claims = [Claim(job, f"{job}-head", "training", one, world.run(job), pool="train") for job in jobs]
    node = NodeView("node-a", "h200", 4, Room(4, 9000, 2**40, 100), claims=(*claims, Claim("x", "foreign", "x", one)))
    seen = NodesSeen(world.clock(), (node,), whole=True)
    world.sql.commit(Changes(nodes=[NodesWrite("home", seen)]), at=world.clock())


def a_caller(role: Role) -> Caller:
    projects = None if role is Role.ADMIN else frozenset({OWN})
    return Caller(Actor("me", ActorKind.TOKEN), role, OWN, projects)


@asynccontextmanager
async def context_of(world: World, role: Role) -> AsyncIterator[Context]:
    hub = Hub(StoreFeed(world.sql), Ears().hear)
    await hub.start()
    services = Services(world.ports, hub, retention_s=60)
    yield Context(a_caller(role), services, world.clock(), hub.position)
    services.close()


async def answer(world: World, role: Role, document: str, place: Place) -> ExecutionResult:
    async with context_of(world, role) as context:
        return await SCHEMA.execute(document, variable_values=place.variables, context_value=context)


def shows(data: Any, place: Place) -> bool:
    text = json.dumps(data)
    return any(mark in text for mark in place.marks)


NODE = "query($%s: ID!) { node(id: $%s) { id } }"
QUERIES = {
    **{f"node {kind}": NODE % (kind, kind) for kind in ("job", "attempt", "capsule", "event", "pod", "log")},
    "nodes": "query($job: ID!, $event: ID!, $capsule: ID!) { nodes(ids: [$job, $event, $capsule]) { id } }",
    "job": "query($job: ID!) { job(id: $job) { id events(first: 9) { nodes { id } } capsule { digest } } }",
    "jobs": "{ jobs(first: 9) { nodes { id } } }",
    "jobs of a project": "query($project: String!) { jobs(filter: {projects: [$project]}, first: 9) { nodes { id } } }",
    "jobs by id": "query($job: ID!) { jobs(filter: {ids: [$job]}, first: 9) { nodes { id } } }",
    "jobCounts": "{ jobCounts(by: PROJECT) { value count } }",
    "events": "{ events(first: 99) { nodes { id workload { id } } } }",
    "events of a job": "query($job: ID!) { events(filter: {workloads: [$job]}, first: 9) { nodes { id } } }",
    "viewer": "{ viewer { projects } }",
    "capacity of holders": "{ capacity { series { holders { name pool workload { id project } } } } }",
    "capacity of nodes": "{ capacity { series { nodes { holders { name pool workload { id project } } } } } }",
    "capacity that is waited for": "{ capacity { waiting { pool message workload { id project } } } }",
}
OF_NOBODY = {"feed", "fleets", "fits", "health"}
"""They show everybody the same."""


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", QUERIES)
async def test_queries_show_what_the_caller_may_see(
    world: World, places: dict[str, Place], role: Role, name: str
) -> None:
    for project in (OWN, OTHER):
        result = await answer(world, role, QUERIES[name], places[project])
        assert result.errors is None
        assert shows(result.data, places[project]) is (project == OWN or role is Role.ADMIN), project


@pytest.mark.parametrize("name", [name for name, text in QUERIES.items() if text.startswith("query")])
async def test_what_is_absent_and_what_is_unseen_look_alike(world: World, places: dict[str, Place], name: str) -> None:
    unseen = await answer(world, Role.SUBMITTER, QUERIES[name], places[OTHER])
    absent = await answer(world, Role.SUBMITTER, QUERIES[name], places[ABSENT])
    assert (unseen.data, unseen.errors) == (absent.data, absent.errors)


async def test_totals_count_what_the_caller_may_see(world: World, places: dict[str, Place]) -> None:
    counts = {}
    for role in Role:
        result = await answer(world, role, "{ jobs(first: 1) { totalCount } }", places[OWN])
        assert result.data is not None
        counts[role] = result.data["jobs"]["totalCount"]
    assert counts[Role.VIEWER] == counts[Role.SUBMITTER] < counts[Role.ADMIN]


@pytest.mark.parametrize("role", Role)
async def test_what_is_held_by_others_has_no_name(world: World, places: dict[str, Place], role: Role) -> None:
    result = await answer(world, role, "{ capacity { series { holders { name pool gpus kind } } } }", places[OWN])
    assert result.data is not None
    holders = result.data["capacity"][0]["series"][0]["holders"]
    sees_all = role is Role.ADMIN
    assert [one["gpus"] for one in holders] == [1, 1, 1]
    assert {one["name"] for one in holders} == {f"in-{OWN}", *((f"in-{OTHER}", "x/foreign") if sees_all else (None,))}
    assert [one["pool"] for one in holders if one["kind"] == "JOB"].count(None) == (0 if sees_all else 1)


async def test_what_holds_a_job_of_others_is_told_in_numbers_alone(world: World, places: dict[str, Place]) -> None:
    result = await answer(world, Role.VIEWER, "{ capacity { waiting { workload { id } message } } }", places[OWN])
    assert result.data is not None
    unseen = [one["message"] for one in result.data["capacity"][0]["waiting"] if one["workload"] is None]
    assert unseen == ["1 machine with 1 h200 GPU has no node yet."]


async def test_a_spec_in_a_project_of_others_does_not_fit(world: World, places: dict[str, Place]) -> None:
    document = "query($project: String!) { fits(spec: SPEC) { verdict userErrors { code field } } }"
    for place in (places[OTHER], places[ABSENT]):
        result = await answer(world, Role.SUBMITTER, document.replace("SPEC", SPEC), place)
        assert result.data is not None
        errors = [{"code": "UNKNOWN_PROJECT", "field": ["spec", "project"]}]
        assert result.data["fits"] == {"verdict": "NEVER", "userErrors": errors}


SPEC = """{name: "new", project: $project, command: ["true"],
    pools: [{name: "train", series: "h200", machines: 1, gpusPerMachine: 1}]}"""
CODE = '{files: [{path: "train.py", content: "1"}]}'
_MUTATIONS = {
    "prepareCode": 'mutation { prepareCode(input: {digest: "DIGEST", transportSha256: "DIGEST", bytes: 5, files: 1})'
    " { status userErrors { code } } }",
    "submitJob": "mutation($project: String!) { submitJob(input: {spec: SPEC, code: CODE})"
    " { status job { project } userErrors { code field } } }",
    "submitJobs": "mutation($project: String!) { submitJobs(input: {items: [{spec: SPEC, code: CODE}]})"
    " { outcomes { status job { project } userErrors { code } } userErrors { code } } }",
    "cancelJob": "mutation($job: ID!) { cancelJob(id: $job) { status job { id } userErrors { code field } } }",
    "cancelJobs": "mutation($job: ID!) { cancelJobs(filter: {ids: [$job]}, dryRun: true)"
    " { matchedCount outcomes { job { id } } userErrors { code } } }",
    "retryJob": "mutation($job: ID!) { retryJob(id: $job) { status job { id } userErrors { code field } } }",
}
MUTATIONS = {
    name: text.replace("SPEC", SPEC).replace("CODE", CODE).replace("DIGEST", DIGEST)
    for name, text in _MUTATIONS.items()
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", MUTATIONS)
async def test_mutations_touch_what_the_caller_may_change(
    world: World, places: dict[str, Place], role: Role, name: str
) -> None:
    for project in (OTHER, OWN):
        result = await answer(world, role, MUTATIONS[name], places[project])
        if role is Role.VIEWER:
            assert result.data is None
            cause = result.errors[0].original_error if result.errors else None
            assert isinstance(cause, StarForgeError)
            assert cause.code == "FORBIDDEN"
        elif name == "prepareCode":
            assert result.data == {"prepareCode": {"status": "UPLOAD_NEEDED", "userErrors": []}}
        else:
            assert result.errors is None
            assert shows(result.data, places[project]) is (project == OWN or role is Role.ADMIN), project


@pytest.mark.parametrize("name", ["cancelJob", "cancelJobs", "retryJob"])
async def test_a_job_that_is_unseen_is_not_found(world: World, places: dict[str, Place], name: str) -> None:
    unseen = await answer(world, Role.SUBMITTER, MUTATIONS[name], places[OTHER])
    absent = await answer(world, Role.SUBMITTER, MUTATIONS[name], places[ABSENT])
    assert (unseen.data, unseen.errors) == (absent.data, absent.errors)
    if name != "cancelJobs":
        assert absent.data is not None
        assert absent.data[name]["userErrors"] == [{"code": "NOT_FOUND", "field": ["id"]}]


async def test_a_project_of_others_is_told_as_unknown(world: World, places: dict[str, Place]) -> None:
    for place in (places[OTHER], places[ABSENT]):
        result = await answer(world, Role.SUBMITTER, MUTATIONS["submitJob"], place)
        assert result.data is not None
        field = ["input", "spec", "project"]
        assert result.data["submitJob"]["userErrors"] == [{"code": "UNKNOWN_PROJECT", "field": field}]


async def test_a_job_goes_to_the_project_of_its_submitter(world: World, places: dict[str, Place]) -> None:
    document = MUTATIONS["submitJob"].replace("($project: String!)", "").replace("project: $project,", "")
    result = await answer(world, Role.SUBMITTER, document, places[ABSENT])
    assert result.data is not None
    assert result.data["submitJob"]["job"] == {"project": OWN}


async def test_who_has_several_projects_and_no_default_has_to_name_one(world: World) -> None:
    document = MUTATIONS["submitJob"].replace("($project: String!)", "").replace("project: $project,", "")
    async with context_of(world, Role.SUBMITTER) as context:
        context.caller = replace(context.caller, project=None, projects=frozenset({OWN, OTHER}))
        result = await SCHEMA.execute(document, context_value=context)
    assert result.data is not None
    assert result.data["submitJob"]["userErrors"] == [{"code": "REQUIRED", "field": ["input", "spec", "project"]}]


@pytest.mark.parametrize("role", Role)
async def test_actions_are_offered_to_whoever_may_do_them(world: World, places: dict[str, Place], role: Role) -> None:
    running = world.submit(replace(DRAFT, project=OWN))
    document = "query($job: ID!) { job(id: $job) { allowedActions } }"
    result = await answer(world, role, document, replace(places[OWN], job=running))
    assert result.data is not None
    offered = set(result.data["job"]["allowedActions"])
    assert offered == {"READ_LOGS", "DOWNLOAD"} | (set() if role is Role.VIEWER else {"CANCEL"})


SUBSCRIPTIONS = {
    "job": "subscription($job: ID!) { job(id: $job) { kind job { id } } }",
    "jobs": "subscription { jobs { kind job { id } } }",
    "jobs of a project": "subscription($project: String!) { jobs(filter: {projects: [$project]}) { kind job { id } } }",
    "events": "subscription($after: String!) { events(after: $after) { kind event { id } } }",
    "jobLogs": "subscription($job: ID!) { jobLogs(id: $job) { lines { text } } }",
    "capacity": "subscription { capacity { kind changedNodes { holders { workload { id } } } } }",
}


async def told(world: World, role: Role, name: str, place: Place) -> list[Any]:
    """What a subscription tells of what there is already; the code of the error that it ends with instead."""
    variables = place.variables | {"after": feed_cursor(0)}
    most = {"job": 1, "jobLogs": 1, "events": len(visible_events(world, role))}.get(name)
    found: list[Any] = []
    async with context_of(world, role) as context:
        stream = await SCHEMA.subscribe(SUBSCRIPTIONS[name], variable_values=variables, context_value=context)
        if isinstance(stream, ExecutionResult):
            return [getattr(error.original_error, "code", None) for error in stream.errors or []]
        async with aclosing(stream) as results:
            async for result in results:
                if result.errors:
                    return [getattr(error.original_error, "code", None) for error in result.errors]
                found += (result.data or {}).values()
                if len(found) == most or (most is None and found[-1]["kind"] == "BOOKMARK"):
                    break
    return found


def visible_events(world: World, role: Role) -> list[str]:
    page = world.sql.entry_page(a_caller(role).events(EventFilter()), Window(1000))
    return [entry.id for _, entry in page.rows]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", SUBSCRIPTIONS)
async def test_subscriptions_tell_what_the_caller_may_see(
    world: World, places: dict[str, Place], role: Role, name: str
) -> None:
    world.submit(replace(DRAFT, project=OWN))  # so that the last event is one that everybody sees
    for project in (OWN, OTHER):
        seen = await told(world, role, name, places[project])
        assert shows(seen, places[project]) is (project == OWN or role is Role.ADMIN), project


@pytest.mark.parametrize("name", ["job", "jobLogs"])
async def test_a_subscription_to_what_is_unseen_is_not_found(world: World, places: dict[str, Place], name: str) -> None:
    for project in (OTHER, ABSENT):
        assert await told(world, Role.VIEWER, name, places[project]) == ["NOT_FOUND"]


def test_the_tables_above_have_every_root_field() -> None:
    schema = SCHEMA._schema
    known = ((schema.query_type, {*QUERIES, *OF_NOBODY}), (schema.mutation_type, {*MUTATIONS}),
             (schema.subscription_type, {*SUBSCRIPTIONS, "health"}))  # fmt: skip
    for kind, names in known:
        assert kind is not None
        assert set(kind.fields) == {name.split()[0] for name in names}
