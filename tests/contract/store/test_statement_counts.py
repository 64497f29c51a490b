"""A batch is one statement however long it is, and what people filter by is found through an index."""

from collections.abc import Callable

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Aspect, Changes
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.queries import EventFilter, JobFilter, JobOrder, JobOrderField, LabelSelector, LogRange, Window
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import EventType, Severity
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, a_command, a_job, an_entry, save, taken

JOBS = [JobId(f"job-{number:04}") for number in range(50)]
RUNS = [RunKey(job, 1) for job in JOBS]
READS: dict[str, Callable[[SqlStore], object]] = {
    "jobs_by_id": lambda store: store.jobs_by_id(JOBS),
    "attempts": lambda store: store.attempts(JOBS),
    "pods": lambda store: store.pods(RUNS),
    "entries": lambda store: store.entries(JOBS),
    "log_sources": lambda store: store.log_sources(RUNS),
    "log_lines": lambda store: store.log_lines(LogRange(RUNS[0], "driver", 1, 1000)),
    "log_ranges": lambda store: store.log_ranges([LogRange(run, "driver", 1, 1000) for run in RUNS]),
    "metric_points": lambda store: store.metric_points(RUNS[0], ["loss"], None, None),
    "metric_names": lambda store: store.metric_names(RUNS),
    "capsules": lambda store: store.capsules([Digest("a"), Digest("b")]),
    "due": lambda store: store.due(at=AT, limit=100),
    "overdue": lambda store: store.overdue(at=AT, limit=100),
    "feed": lambda store: store.feed(after=0, limit=100),
    "entry_page": lambda store: store.entry_page(EventFilter(), Window(100)),
}


@pytest.mark.parametrize("name", READS)
def test_a_batch_is_one_statement(store: SqlStore, name: str) -> None:
    save(store, *(a_job(number) for number in range(50)))
    with sent_by(store) as sent:
        READS[name](store)
    assert len(sent) == 1


def test_a_page_of_jobs_reads_those_that_changed_alone(store: SqlStore) -> None:
    save(store, *(a_job(number) for number in range(50)))
    pages = []
    for statements, changed in ((2, None), (1, None), (2, JOBS[7]), (1, None)):
        if changed:
            save(store, store.jobs_by_id([changed])[changed])
        with sent_by(store) as sent:
            pages.append(store.job_page(JobFilter(), JobOrder(), Window(100)))
        assert len(sent) == statements
    assert pages[0] == pages[1]
    assert pages[2] == pages[3]
    before, after = (dict(page.rows) for page in (pages[1], pages[2]))
    assert [job.id for key, job in after.items() if job != before[key]] == [JOBS[7]]
    assert {job.id: job for job in after.values()} == store.jobs_by_id(JOBS)


def test_a_page_between_two_keys_is_two_statements(store: SqlStore) -> None:
    save(store, *(a_job(number) for number in range(9)))
    keys = [key for key, _ in store.job_page(JobFilter(), JobOrder(), Window(9)).rows]
    with sent_by(store) as sent:
        store.job_page(JobFilter(), JobOrder(), Window(8, after=keys[1], before=keys[7]))
    assert len(sent) == 2


def test_pages_of_many_jobs_are_as_many_statements_as_one(store: SqlStore) -> None:
    save(store, *(a_job(number) for number in range(50)))
    for window in (Window(20, backward=True), Window(20, after=(3,), before=(40,))):
        with sent_by(store) as sent:
            pages = store.entry_pages([(EventFilter(jobs=(job,)), window) for job in JOBS])
        assert len(pages) == len(JOBS)
        assert len(sent) == (2 if window.after else 1)


def test_a_commit_of_many_entries_is_as_many_statements_as_one_of_few(store: SqlStore, backend: str) -> None:
    job = a_job()
    save(store, job, commands=(a_command("c", job),))
    changes = Changes(done=True, entries=[an_entry(f"e{number}", job.run) for number in range(40)])
    found = store.job(job.id)
    assert found is not None
    changes.job(found, Aspect.STATE)
    with sent_by(store) as sent:
        store.commit(changes, at=AT, lease=taken(store, "c"))
    take, lock = 2, int(backend == "postgres")
    assert len(sent) - take - lock == len(("lease", "job", "attempt", "position", "entries", "feed"))


JOB_FILTERS = [
    JobFilter(ids=(JOBS[0],)),
    JobFilter(states=(JobState.RUNNING, JobState.PENDING)),
    JobFilter(active=True),
    JobFilter(outcomes=(JobOutcome.FAILED,)),
    JobFilter(reasons=(ReasonCode.OOM_KILLED,)),
    JobFilter(projects=("vision",)),
    JobFilter(fleets=("home",)),
    JobFilter(series=("h200",)),
    JobFilter(labels=(LabelSelector("team", values=("a",)),)),
    JobFilter(name_prefix="tr"),
    JobFilter(created_by=("ann",)),
    JobFilter(created_after=AT),
    JobFilter(ended_before=AT),
    JobFilter(idempotency_keys=("k",)),
    JobFilter(code=Digest("c")),
]
EVENT_FILTERS = [
    EventFilter(jobs=(JOBS[0],)),
    EventFilter(types=(EventType.KUBERNETES,)),
    EventFilter(min_severity=Severity.ERROR),
    EventFilter(projects=("vision",)),
    EventFilter(fleets=("home",)),
    EventFilter(attempt=2),
    EventFilter(kubernetes_reasons=("FailedScheduling",)),
]


def plan_of(store: SqlStore, ask: Callable[[], object]) -> list[str]:
    with sent_by(store) as sent:
        ask()
    statement, parameters = sent[0]
    with store.database.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    return [str(row.detail) for row in rows]


@pytest.mark.parametrize("backend", ["sqlite"])
@pytest.mark.parametrize("which", JOB_FILTERS, ids=repr)
def test_each_filter_of_jobs_searches_an_index(store: SqlStore, which: JobFilter) -> None:
    plan = plan_of(store, lambda: store.job_count(which, at_most=100))
    assert any(step.startswith("SEARCH job USING") for step in plan)


@pytest.mark.parametrize("backend", ["sqlite"])
@pytest.mark.parametrize("which", EVENT_FILTERS, ids=repr)
def test_each_filter_of_entries_uses_an_index(store: SqlStore, which: EventFilter) -> None:
    plan = plan_of(store, lambda: store.entry_page(which, Window(10)))
    assert any("timeline USING INDEX" in step for step in plan)


@pytest.mark.parametrize("backend", ["sqlite"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("field", JobOrderField)
def test_no_order_of_jobs_is_sorted(store: SqlStore, field: JobOrderField, descending: bool) -> None:
    plan = plan_of(store, lambda: store.job_page(JobFilter(), JobOrder(field, descending), Window(10)))
    assert not [step for step in plan if "TEMP B-TREE FOR ORDER BY" in step], plan
