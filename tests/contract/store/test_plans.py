"""How the databases answer each filter and order of jobs when there are many: by an index, never job by job.

SQLite runs without having analysed its tables, as it does in use; run with -s to see the plans.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from starforge.adapters.store import SqlStore
from starforge.adapters.store.tables import JOB
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.micros import to_micros
from starforge.domain.names import Digest, JobId
from starforge.domain.queries import JobFilter, JobOrder, JobOrderField, Key, LabelOperator, LabelSelector, Window
from starforge.domain.reason import ReasonCode
from tests.contract.store.conftest import emptied
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import after
from tests.contract.store.many import fill

NUMBER = 20_000
PAGE = Window(50)
SELECTIVE: dict[str, JobFilter] = {
    "ids": JobFilter(ids=(JobId("job-000007"), JobId("job-015000"))),
    "states": JobFilter(states=(JobState.RUNNING, JobState.PENDING)),
    "active": JobFilter(active=True),
    "outcomes": JobFilter(outcomes=(JobOutcome.CANCELED,)),
    "reasons": JobFilter(reasons=(ReasonCode.OOM_KILLED,)),
    "projects": JobFilter(projects=("project-07",)),
    "fleets": JobFilter(fleets=("fleet-03",)),
    "series": JobFilter(series=("rare",)),
    "labels": JobFilter(labels=(LabelSelector("batch", LabelOperator.IN, ("17",)),)),
    "name_prefix": JobFilter(name_prefix="train-007"),
    "created_by": JobFilter(created_by=("user-07",)),
    "created_after": JobFilter(created_after=after(NUMBER - 300)),
    "created_before": JobFilter(created_before=after(300)),
    "ended_after": JobFilter(ended_after=after(NUMBER - 300)),
    "ended_before": JobFilter(ended_before=after(500)),
    "idempotency_keys": JobFilter(idempotency_keys=("key-7", "key-19000", "none")),
    "code": JobFilter(code=Digest("code-7")),
}
ORDERS = [JobOrder(field, descending) for field in JobOrderField for descending in (True, False)]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    if request.param == "postgres":
        url = emptied(request.getfixturevalue("migrated_database"))
    else:
        path = tmp_path_factory.mktemp("plans") / "store.db"
        path.write_bytes(Path(request.getfixturevalue("migrated_file")).read_bytes())
        url = f"sqlite:///{path}"
    store = SqlStore(url)
    fill(store, NUMBER)
    if store.database.is_sqlite:
        with store.database.writing() as connection:
            connection.execute(text("DELETE FROM sqlite_stat1"))
        store.database.engine.dispose()  # a connection remembers what it read of them
    yield store
    store.close()


def plan(store: SqlStore, ask: Callable[[], object]) -> list[str]:
    """The steps of the plan of the first statement that `ask` sends."""
    with sent_by(store) as sent:
        ask()
    statement, parameters = sent[0]
    with store.database.engine.connect() as connection:
        if store.database.is_sqlite:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            return [str(row.detail) for row in rows]
        found = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
        return list(_steps(json.loads(found)[0]["Plan"]))


def _steps(node: dict[str, Any]) -> Iterator[str]:
    yield " ".join(str(node[name]) for name in ("Node Type", "Relation Name", "Index Name") if name in node)
    for inner in node.get("Plans", ()):
        yield from _steps(inner)


def reads_every_job(step: str) -> bool:
    """Whether a step walks the table of jobs itself, or a whole index to throw most of it away."""
    return step in ("SCAN job", "Seq Scan job", "Parallel Seq Scan job")


def show(store: SqlStore, what: str, steps: list[str]) -> None:
    of_jobs = [step for step in steps if "job" in step]
    print(f"{'sqlite' if store.database.is_sqlite else 'postgres':9}{what:38}{' | '.join(of_jobs)}")  # noqa: T201


def test_every_field_of_the_filter_is_here() -> None:
    assert set(SELECTIVE) == {field.name for field in fields(JobFilter)}


@pytest.mark.parametrize("name", SELECTIVE)
def test_a_selective_filter_is_answered_by_an_index(full: SqlStore, name: str) -> None:
    which = SELECTIVE[name]
    number = full.job_count(which, at_most=NUMBER)
    assert 0 < number < NUMBER / 15
    counted = plan(full, lambda: full.job_count(which, at_most=10_001))
    listed = plan(full, lambda: full.job_page(which, JobOrder(), PAGE))
    show(full, f"{name} counted ({number})", counted)
    show(full, f"{name} listed ({number})", listed)
    assert not [step for step in (*counted, *listed) if reads_every_job(step)]
    if full.database.is_sqlite:  # SCAN is a walk through all of an index
        assert not [step for step in (*counted, *listed) if step.startswith("SCAN job")]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: f"{order.field}-{order.descending}")
@pytest.mark.parametrize("backward", [False, True])
def test_each_order_reads_no_further_than_its_page(full: SqlStore, order: JobOrder, backward: bool) -> None:
    middle = key_at(full, order, NUMBER // 2)
    inside = Window(50, before=middle, backward=True) if backward else Window(50, after=middle)
    for name, window in (("first page", Window(50, backward=backward)), ("next page", inside)):
        steps = plan(full, lambda window=window: full.job_page(JobFilter(), order, window))  # type: ignore[misc]
        show(full, f"{order.field} {'desc' if order.descending else 'asc'} {name}", steps)
        assert not [step for step in steps if reads_every_job(step) or "B-TREE" in step]
        assert not [step for step in steps if step.startswith("Sort")]
        if full.database.is_sqlite and window is inside:
            assert not [step for step in steps if step.startswith("SCAN job")]


def key_at(store: SqlStore, order: JobOrder, number: int) -> Key:
    """The key of a row in the middle of the list, or of the first without a value after it."""
    column = JOB.c[order.field.lower()]
    direction = column.desc() if order.descending else column.asc()
    tie = JOB.c.id.desc() if order.descending else JOB.c.id.asc()
    rows = select(column, JOB.c.id).order_by(direction.nulls_last(), tie).offset(number).limit(1)
    with store.database.reading() as connection:
        value, tied = connection.execute(rows).one()
    return (to_micros(value) if isinstance(value, datetime) else value, tied)


@pytest.mark.parametrize("project", ["project-07"])
def test_a_project_is_read_in_the_order_of_creation(full: SqlStore, project: str) -> None:
    steps = plan(full, lambda: full.job_page(JobFilter(projects=(project,)), JobOrder(), PAGE))
    show(full, "one project, newest first", steps)
    assert not [step for step in steps if "B-TREE" in step or step.startswith("Sort")]
