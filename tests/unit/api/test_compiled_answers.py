"""The compiled way gives, byte for byte, what graphql-core gives without it: for what clients send, and much else."""

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from graphql import (
    DocumentNode,
    GraphQLObjectType,
    OperationDefinitionNode,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_non_null_type,
    parse,
    validate,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from starforge.adapters.store import SqlStore, migrate
from starforge.api.context import Context, Services
from starforge.api.schema import make_schema
from starforge.api.transport.compiled import CompiledExecutor
from starforge.api.transport.documents import DocumentText
from starforge.domain.changes import Aspect, Changes
from starforge.domain.job import Job
from starforge.domain.names import JobId
from starforge.domain.observation import PodView
from starforge.domain.rights import Caller, Role
from starforge.domain.spec import JobSpec
from tests.contract.store.examples import AT, ME, a_job, an_entry, any_attempt, anything
from tests.operations import operations, our_schema

COMPILED, PLAIN = make_schema(), make_schema()
PLAIN.execution_context_class = StrawberryGraphQLCoreExecutionContext
CALLER = Caller(ME, Role.ADMIN)
# Health is what a gateway thinks of itself from moment to moment: tests/unit/api/test_health_desk.py asks for it.
QUERIES = [
    one for one in operations(our_schema()) if one.document and one.kind == "query" and "  health {" not in one.document
]
EVERY = list(HealthCheck)
JOBS = 4


@dataclass
class Library:
    """A store with jobs of every kind in it, and a gateway's services over it."""

    store: SqlStore
    services: Services
    numbers: Iterator[int] = field(default_factory=itertools.count)
    jobs: list[Job] = field(default_factory=list)

    def context(self) -> Context:
        return Context(CALLER, self.services, AT, 7)

    def add(self, job: Job, pods: tuple[PodView, ...]) -> Job:
        new = replace(job, id=JobId(f"job-{next(self.numbers):06}"), revision=0, idempotency_key=None)
        changes = Changes(pods=[(new.run, pod) for pod in {pod.uid: pod for pod in pods}.values()])
        changes.job(new, Aspect.STATE)
        changes.extend([an_entry(f"event-{new.id}", new.run)])
        self.store.commit(changes, at=AT)
        return new


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    url = f"sqlite:///{tmp_path_factory.mktemp('compiled')}/store.db"
    migrate(url)
    store = SqlStore(url)
    ports: Any = SimpleNamespace(store=store)
    services = Services(ports, cast("Any", None), retention_s=60)
    there = Library(store, services)

    @settings(max_examples=JOBS, deadline=None, suppress_health_check=EVERY, derandomize=True, database=None)
    @given(job=some_job(), pods=st.lists(anything(PodView), min_size=1, max_size=2).map(tuple))
    def fill(job: Job, pods: tuple[PodView, ...]) -> None:
        there.jobs.append(there.add(job, pods))

    fill()
    yield there
    services.close()
    store.close()


def both(library: Library, text: str, variables: dict[str, Any]) -> tuple[str, str]:
    """The answer by either way; the compiled one is the second of its document, made by what the first left."""
    asked = {name: value for name, value in variables.items() if f"${name}" in text}
    document = parse(text)

    async def ask(schema: Any) -> str:
        result = await schema.execute(document_text(document, text), asked, library.context())
        errors = sorted(json.dumps([error.formatted, repr(error.original_error)]) for error in result.errors or ())
        return json.dumps([result.data, errors])

    first, second, plain = (asyncio.run(ask(schema)) for schema in (COMPILED, COMPILED, PLAIN))
    assert first == second
    return second, plain


def document_text(document: DocumentNode, text: str) -> DocumentText:
    prepared = DocumentText(text)
    prepared.parsed, prepared.introspecting, prepared.extensions = document, frozenset(), {}
    return prepared


def some_job() -> st.SearchStrategy[Job]:
    spec = anything(JobSpec).filter(lambda spec: bool(spec.pools))
    return st.builds(lambda spec, attempt: replace(a_job(), spec=spec, attempt=attempt), spec, any_attempt())


@pytest.mark.parametrize("operation", QUERIES, ids=lambda one: one.name)
def test_what_clients_send(library: Library, operation: Any) -> None:
    for job in library.jobs:
        values = {
            "id": job.id, "old": job.id, "new": library.jobs[0].id, "ids": [job.id, "absent"], "first": 3, "last": 3,
            "since": "2020-01-01T00:00:00Z", "names": ["loss"], "query": "e", "keys": ["key"], "key": "key-1",
            "filter": {"ids": [job.id, library.jobs[0].id]}, "seen": 500, "fromLine": 1, "batch": "b1",
        }  # fmt: skip
        compiled, plain = both(library, operation.document, values)
        assert compiled == plain


class Selections:
    """Draws selections of any type, of fields that can be answered from the rows of a job."""

    DEPTH = 4
    LEFT_OUT = frozenset({"download", "contents", "diff", "placement", "logSearch", "logs", "metrics", "webUrl"})

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._aliases = itertools.count()

    def of(self, kind: Any, depth: int = 0) -> str:
        some = [name for name in kind.fields if self._can(kind.fields[name], name, depth)]
        names = self._draw(st.lists(st.sampled_from(["__typename", *some]), min_size=1, max_size=6))
        return "{ " + " ".join([*(self._field(kind, name, depth) for name in names), *self._parts(kind, depth)]) + " }"

    def _can(self, field: Any, name: str, depth: int) -> bool:
        needs = any(is_non_null_type(one.type) and one.default_value is None for one in field.args.values())
        deep = not is_leaf_type(get_named_type(field.type)) and depth >= self.DEPTH
        return not (needs or deep or name in self.LEFT_OUT)

    def _field(self, kind: Any, name: str, depth: int) -> str:
        alias = f"a{next(self._aliases)}: "  # no two fields of one name in the answer need be alike
        steered = self._draw(st.sampled_from(["", "", "", "@include(if: $yes)", "@skip(if: $yes)", "@skip(if: $no)"]))
        if name == "__typename":
            return f"{alias}__typename {steered}"
        type_ = get_named_type(kind.fields[name].type)
        arguments = "(first: 2)" if "first" in kind.fields[name].args else ""
        inner = "" if is_leaf_type(type_) else self.of(type_, depth + 1)
        return f"{alias}{name}{arguments} {steered} {inner}"

    def _parts(self, kind: Any, depth: int) -> list[str]:
        if is_abstract_type(kind):
            kinds = COMPILED._schema.get_possible_types(kind)
            return [
                f"... on {one.name} {self.of(one, depth)}"
                for one in self._draw(st.lists(st.sampled_from(kinds), max_size=2))
            ]
        return [f"... {self.of(kind, depth)}"] if depth < 2 and self._draw(st.booleans()) else []


@st.composite
def documents(draw: st.DrawFn) -> str:
    types: Any = COMPILED._schema.type_map
    assert isinstance(types["Job"], GraphQLObjectType)
    job, page, node = (Selections(draw).of(types[name]) for name in ("Job", "JobConnection", "Node"))
    return (
        "query($id: ID!, $ids: [ID!]!, $yes: Boolean!, $no: Boolean!) "
        f"{{ job(id: $id) {job} jobs(first: 2, filter: {{ids: $ids}}) {page} node(id: $id) {node} "
        "a: __typename @include(if: $yes) b: __typename @skip(if: $no) events(last: 2) { nodes { __typename id } } }"
    )


@settings(max_examples=5, deadline=None, suppress_health_check=EVERY)
@given(text=documents(), number=st.integers(0, JOBS - 1), yes=st.booleans())
def test_any_selection(library: Library, text: str, number: int, yes: bool) -> None:
    assert validate(COMPILED._schema, parse(text)) == []
    there = library.jobs[number]
    values = {"id": there.id, "ids": [there.id], "yes": yes, "no": not yes}
    compiled, plain = both(library, text, values)
    assert compiled == plain


def test_a_page_takes_the_compiled_way(library: Library) -> None:
    """Else the tests above would compare nothing."""
    document = parse("{ jobs(first: 1) { nodes { id state labels { key } } } }")
    calls: list[str] = []

    class Heard(CompiledExecutor):
        def execute_field(self, parent_type: Any, *rest: Any) -> Any:
            calls.append(parent_type.name)
            return super().execute_field(parent_type, *rest)

    heard = make_schema()
    heard.execution_context_class = Heard
    result = asyncio.run(heard.execute(document_text(document, "{ a page }"), {}, library.context()))
    assert result.errors is None
    assert calls == ["Query"]
    (operation,) = document.definitions
    assert isinstance(operation, OperationDefinitionNode)
