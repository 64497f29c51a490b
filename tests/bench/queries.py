"""How long the store's heavier questions take: `python -m tests.bench.queries [sqlite] [postgres]`.

Counts and pages over 100,000 jobs, and a curve of a million points, on SQLite and on Postgres.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from sqlalchemy import insert, text

from starforge.adapters.store import SqlStore, migrate
from starforge.adapters.store.tables import METRIC_POINT
from starforge.domain.changes import Changes
from starforge.domain.job import JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.progress import metric_point
from starforge.domain.queries import CurveRange, JobCountKey, JobFilter, JobOrder, JobOrderField, LabelSelector, Window
from tests.contract.store.examples import AT, after
from tests.contract.store.many import fill
from tests.contract.store.postgres import running_postgres

JOBS, POINTS, REPEATS = 100_000, 1_000_000, 5
PROJECT = JobFilter(projects=("project-07",))
RECENT = JobFilter(ended_after=after(JOBS - 7 * 1000))
RUN = RunKey(JobId("job-000001"), 1)


@contextmanager
def stores() -> Iterator[list[tuple[str, SqlStore]]]:
    """A full store on each database."""
    with tempfile.TemporaryDirectory() as directory, running_postgres() as postgres:
        urls = {"sqlite": f"sqlite:///{directory}/bench.db", "postgres": postgres}
        urls = {name: url for name, url in urls.items() if name in (sys.argv[1:] or urls)}
        opened = []
        for name, url in urls.items():
            migrate(url)
            opened.append((name, SqlStore(url)))
        for _, store in opened:
            fill(store, JOBS)
            fill_curve(store)
        yield opened
        for _, store in opened:
            store.close()


def fill_curve(store: SqlStore) -> None:
    store.commit(Changes(metrics=[(RUN, metric_point("loss", 1.0, AT, 0))]), at=AT)
    with store.database.writing() as connection:
        for start in range(0, POINTS, 10_000):
            rows = [
                {"series": 1, "step": n, "value": float(n % 977), "at": after(n)} for n in range(start, start + 10_000)
            ]
            connection.execute(insert(METRIC_POINT), rows)
        connection.execute(text("ANALYZE"))


def questions(store: SqlStore) -> Iterator[tuple[str, Callable[[], object]]]:
    for by in JobCountKey:
        label = "team" if by is JobCountKey.LABEL else None
        for name, which in (("all", JobFilter()), ("one project", PROJECT), ("ended lately", RECENT)):
            yield (
                f"jobCounts by {by}, {name}",
                lambda which=which, by=by, label=label: store.job_counts(  # type: ignore[misc]
                    which, by, label=label, at_most=100, timeout_s=30
                ),
            )
    for field in JobOrderField:
        yield f"a page by {field}", lambda field=field: store.job_page(JobFilter(), JobOrder(field), Window(50))  # type: ignore[misc]
    yield "totalCount of all", lambda: store.job_count(JobFilter(), at_most=10_001)
    yield "totalCount of succeeded", lambda: store.job_count(JobFilter(states=(JobState.SUCCEEDED,)), at_most=10_001)
    batch = JobFilter(labels=(LabelSelector("batch", values=("17",)),))
    yield "a page of one batch", lambda: store.job_page(batch, JobOrder(), Window(50))
    yield f"a curve of {POINTS:,} points in 500", lambda: store.metric_curves([RUN], CurveRange(None, most=500))


def main() -> None:
    with stores() as opened:
        sys.stdout.write(f"{JOBS:,} jobs, median of {REPEATS}, milliseconds\n\n")
        sys.stdout.write(f"| question | {' | '.join(name for name, _ in opened)} |\n|---|{'--:|' * len(opened)}\n")
        columns = [list(questions(store)) for _, store in opened]
        for rows in zip(*columns, strict=True):
            times = [f"{milliseconds(ask):.1f}" for _, ask in rows]
            sys.stdout.write(f"| {rows[0][0]} | {' | '.join(times)} |\n")
            sys.stdout.flush()


def milliseconds(ask: Callable[[], object]) -> float:
    ask()
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - began)
    return median(taken) * 1000


if __name__ == "__main__":
    main()
