"""A list of jobs with everything that can be asked about them sends as many statements for fifty as for two."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from graphql import (
    GraphQLNamedType,
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_required_argument,
    parse,
    validate,
)
from graphql import execute as run

from starforge.adapters.store import SqlStore
from starforge.api.context import Context, Services
from starforge.api.schema import make_schema
from starforge.domain.changes import CapsuleRecord, Changes, LogWrite
from starforge.domain.job import Job, JobOutcome, JobState, RunIdentity, StateSpan
from starforge.domain.logs import DRIVER, LogKind, LogLine, LogSource
from starforge.domain.names import Digest
from starforge.domain.ports import FleetKind, Ports
from starforge.domain.progress import Progress, metric_point
from starforge.domain.rights import Caller, Role
from starforge.domain.spec import Deadlines, FleetDefaults, Label
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, ME, a_job, a_pod, a_spec, after, an_entry, save

NUMBER = 50
DEPTH = 9
PAGES = {"logs", "logSearch", "events"}
ONCE = {"Attempt.job", "Pod.logSources", "LogSource.pod", "Placement.fleet"}
"""Fields that lead back to where one comes from: of these only what is below the first is asked for."""
DEFAULTS = FleetDefaults("home", None, 1, "2Gi", "1Gi", Deadlines(0, 0, 0), 30)


class OnlyFleet:
    name, kind = "home", FleetKind.SIMULATED

    def defaults(self) -> FleetDefaults:
        return DEFAULTS


def a_whole_job(number: int) -> Job:
    """A job that has something to show for every field."""
    spec = a_spec(series=("h200", "a100"), labels=(Label("team", "a"),))
    job = a_job(number, spec, at=after(number))
    points = tuple(metric_point(name, 1.0, AT, 1) for name in ("loss", "accuracy"))
    attempt = replace(
        job.attempt, spans=(StateSpan(JobState.SUCCEEDED, AT),), outcome=JobOutcome.SUCCEEDED, launched_at=AT,
        started_at=AT, ended_at=AT, run=RunIdentity("run", "ns"), progress=Progress(AT, 1, 2, points),
    )  # fmt: skip
    return replace(job, attempt=attempt, code=Digest(f"code-{number}"), capsule=Digest(f"capsule-{number}"))


def what_belongs_to(job: Job, number: int) -> Changes:
    digest = Digest(f"capsule-{number}")
    source = LogSource(job.run, DRIVER, LogKind.DRIVER, lines=2, bytes=4)
    return Changes(
        pods=[(job.run, replace(a_pod(f"pod-{number}-{one}"), pool=f"pool{one}")) for one in range(2)],
        logs=[LogWrite(source, (LogLine(1, "a"), LogLine(2, "b")))],
        metrics=[(job.run, metric_point(name, float(n), AT, n)) for n in range(3) for name in ("loss", "accuracy")],
        entries=[an_entry(f"event-{number}-{one}", job.run) for one in range(3)],
        capsules=[CapsuleRecord(digest, Digest(f"code-{number}"), 1, 1, "0" * 64, "r", AT)],
    )  # fmt: skip


@pytest.fixture
def full(store: SqlStore) -> SqlStore:
    jobs = [a_whole_job(number) for number in range(NUMBER)]
    save(store, *jobs)
    for number, job in enumerate(jobs):
        store.commit(what_belongs_to(job, number), at=AT)
    return store


def everything(schema: GraphQLSchema, type_: GraphQLNamedType, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Every field of a type, and of what is below it, that can be asked for without arguments and is no page."""
    for name, field in cast("Any", type_).fields.items():
        of, place = get_named_type(field.type), f"{type_.name}.{name}"
        if name in PAGES or name.endswith("ownload") or name == "contents" or place in above:
            continue
        if any(is_required_argument(argument) for argument in field.args.values()):
            continue
        if is_leaf_type(of):
            yield name
        elif place in ONCE or is_abstract_type(of):
            yield f"{name} {{ id }}"
        elif len(above) < DEPTH and not (of.name == "Job" and above):
            yield f"{name} {{ {' '.join(everything(schema, of, (*above, place)))} }}"


def asked(store: SqlStore, fields: str, first: int) -> tuple[int, list[Any]]:
    """How many statements a list of jobs sent, and the jobs."""
    # Another store, which has not read any of the jobs yet.
    fresh = SqlStore(store.database.url.render_as_string(hide_password=False))
    try:
        with sent_by(fresh) as sent:
            nodes = asyncio.run(_answer(fresh, f"{{ jobs(first: {first}) {{ totalCount nodes {{ {fields} }} }} }}"))
        return len(sent), nodes
    finally:
        fresh.close()


async def _answer(store: SqlStore, query: str) -> list[Any]:
    schema = make_schema()._schema
    document = parse(query)
    assert validate(schema, document) == []
    ports = cast("Ports", type("SomePorts", (), {"store": store, "fleet": OnlyFleet()})())
    services = Services(ports, cast("Any", None), retention_s=60, web_url="https://forge.example.com")
    context = Context(Caller(ME, Role.ADMIN), services, AT, 0)
    try:
        result: Any = await cast("Any", run(schema, document, context_value=context))
    finally:
        services.close()
    assert result.errors is None, result.errors
    nodes: list[Any] = result.data["jobs"]["nodes"]
    return nodes


def test_every_field_of_a_job_costs_the_same_for_two_jobs_and_for_fifty(full: SqlStore) -> None:
    schema = make_schema()._schema
    fields = " ".join(everything(schema, schema.type_map["Job"]))
    assert all(f" {name} " in f" {fields} " for name in ("metricNames", "metrics", "pools", "attempts", "placement"))
    few, nodes = asked(full, fields, 2)
    many, all_nodes = asked(full, fields, NUMBER)
    assert (len(nodes), len(all_nodes)) == (2, NUMBER)
    assert few == many <= 14
    for node in all_nodes:
        assert node["capsule"]
        assert [one["name"] for one in node["metrics"]] == ["accuracy", "loss"]
        assert node["metricNames"] == ["loss", "accuracy"]
        assert len(node["pods"]) == 2
        assert node["logSources"][0]["lines"] == 2
        assert node["webUrl"] == f"https://forge.example.com/jobs/{node['id']}"


@pytest.mark.parametrize(
    "field",
    [
        "events(last: 2) { nodes { id } pageInfo { hasPreviousPage } }",
        "events(first: 2) { nodes { id workload { id } } }",
        'events(first: 1, filter: { types: [STATE_CHANGED] }) { nodes { id } }',
        "logs(last: 1) { nodes { text } }",
        "logs(first: 2) { nodes { text } source { key } }",
        "diff(other: \"job-0003\") { sameCode spec { path } }",
        "metrics(names: [\"loss\"], maxPoints: 2) { values }",
    ],
)  # fmt: skip
def test_so_does_each_page_below_a_job(full: SqlStore, field: str) -> None:
    few, nodes = asked(full, field, 2)
    many, all_nodes = asked(full, field, NUMBER)
    assert few == many
    assert all(next(iter(node.values())) for node in all_nodes)
    assert all_nodes[:2] == nodes
