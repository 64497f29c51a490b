"""Pages by key, in every order and both directions, also while rows are inserted."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes
from starforge.domain.errors import CursorInvalid
from starforge.domain.job import Job
from starforge.domain.micros import to_micros
from starforge.domain.names import JobId
from starforge.domain.queries import EventFilter, JobFilter, JobOrder, JobOrderField, Key, Window
from tests.contract.store.examples import AT, a_job, a_spec, after, an_entry, save, saved

VALUES: dict[JobOrderField, Callable[[Job], Any]] = {
    JobOrderField.CREATED_AT: lambda job: job.created_at,
    JobOrderField.UPDATED_AT: lambda job: job.updated_at,
    JobOrderField.STARTED_AT: lambda job: job.attempt.started_at,
    JobOrderField.ENDED_AT: lambda job: job.attempt.ended_at,
    JobOrderField.NAME: lambda job: job.spec.name,
    JobOrderField.PRIORITY: lambda job: job.spec.priority,
    JobOrderField.GPUS: lambda job: job.spec.gpus,
}


def some_job(number: int, seed: random.Random) -> Job:
    """A job whose values collide with those of others, or are missing."""
    spec = a_spec(seed.choice(["a", "Z", "é", "a b"]), priority=seed.randint(-1, 1), gpus=seed.randint(0, 2))
    job = a_job(number, spec, at=after(seed.randint(0, 2)))
    times = {name: seed.choice([None, after(1), after(2)]) for name in ("started_at", "ended_at")}
    attempt = replace(job.attempt, **times)  # type: ignore[arg-type]  # both are times
    return replace(
        job, id=JobId(f"job-{seed.randrange(10**9)}-{number}"), attempt=attempt, updated_at=after(seed.randint(0, 3))
    )


def in_order(jobs: list[Job], order: JobOrder) -> list[JobId]:
    value = VALUES[order.field]
    having = [job for job in jobs if value(job) is not None]
    having.sort(key=lambda job: (value(job), job.id), reverse=order.descending)
    lacking = sorted((job.id for job in jobs if value(job) is None), reverse=order.descending)
    return [job.id for job in having] + lacking


def walk(store: SqlStore, order: JobOrder, limit: int, *, backward: bool) -> Iterator[list[JobId]]:
    """Ids page by page, each page in the order of the list."""
    key: Key | None = None
    while True:
        window = Window(limit, before=key, backward=True) if backward else Window(limit, after=key)
        page = store.job_page(JobFilter(), order, window)
        yield [job.id for _, job in page.rows]
        if not (page.has_previous if backward else page.has_next):
            return
        key = page.rows[0 if backward else -1][0]


@pytest.fixture
def jobs(store: SqlStore) -> list[Job]:
    seed = random.Random(7)
    jobs = [some_job(number, seed) for number in range(23)]
    save(store, *jobs)
    return jobs


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("field", JobOrderField)
def test_every_order_in_both_directions(
    store: SqlStore, jobs: list[Job], field: JobOrderField, descending: bool
) -> None:
    order = JobOrder(field, descending)
    expected = in_order(jobs, order)
    assert [job for page in walk(store, order, 4, backward=False) for job in page] == expected
    pages = list(walk(store, order, 5, backward=True))
    assert [job for page in reversed(pages) for job in page] == expected


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("field", [JobOrderField.CREATED_AT, JobOrderField.ENDED_AT])
def test_any_window(store: SqlStore, jobs: list[Job], field: JobOrderField, descending: bool) -> None:
    order = JobOrder(field, descending)
    rows = store.job_page(JobFilter(), order, Window(99)).rows
    keys = [key for key, _ in rows]
    seed = random.Random(3)
    for _ in range(40):
        low, high = sorted(seed.sample(range(-1, len(rows) + 1), 2))
        limit, backward = seed.randint(1, 6), seed.random() < 0.5
        window = Window(
            limit, keys[low] if low >= 0 else None, keys[high] if high < len(keys) else None, backward=backward
        )
        page = store.job_page(JobFilter(), order, window)
        inside = list(range(low + 1, high))
        chosen = inside[-limit:] if backward else inside[:limit]
        assert [key for key, _ in page.rows] == [keys[index] for index in chosen]
        if chosen:
            assert (page.has_previous, page.has_next) == (chosen[0] > 0, chosen[-1] < len(keys) - 1)


def test_a_page_beyond_everything_is_empty_and_says_what_lies_behind(store: SqlStore, jobs: list[Job]) -> None:
    page = store.job_page(JobFilter(), JobOrder(descending=False), Window(5, after=(to_micros(after(99)), "x")))
    assert (page.rows, page.has_next, page.has_previous) == ([], False, True)
    page = store.job_page(JobFilter(), JobOrder(descending=False), Window(5, before=(0, ""), backward=True))
    assert (page.rows, page.has_next, page.has_previous) == ([], True, False)


_numbers = count(100)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    field=st.sampled_from(JobOrderField), descending=st.booleans(), backward=st.booleans(), limit=st.integers(1, 6),
    inserted=st.lists(st.integers(0, 3), max_size=8), random_=st.randoms(use_true_random=False),
)  # fmt: skip
def test_rows_that_were_there_come_once_and_in_order_while_others_are_inserted(  # noqa: PLR0917  # hypothesis draws them
    store: SqlStore, field: JobOrderField, descending: bool, backward: bool, limit: int, inserted: list[int],
    random_: random.Random,
) -> None:  # fmt: skip
    save(store, *(some_job(next(_numbers), random_) for _ in range(6)))
    order = JobOrder(field, descending)
    there = [job.id for _, job in store.job_page(JobFilter(), order, Window(10_000)).rows]
    seen: list[JobId] = []
    for page in walk(store, order, limit * 10, backward=backward):
        seen = page + seen if backward else seen + page
        new = [some_job(next(_numbers), random_) for _ in range(inserted.pop() if inserted else 0)]
        save(store, *new)
    assert [job for job in seen if job in set(there)] == there
    assert len(seen) == len(set(seen))


def test_keys_are_plain_values(store: SqlStore, jobs: list[Job]) -> None:
    for field in JobOrderField:
        for key, job in store.job_page(JobFilter(), JobOrder(field), Window(99)).rows:
            value = VALUES[field](job)
            assert key == (to_micros(value) if isinstance(value, datetime) else value, job.id)


@pytest.mark.parametrize(
    "key", [(), ("a", "b"), (1,), (1, 2), (True, "b"), (2**63, "b"), (2**62, "b"), (None, "b"), (1.5, "b")]
)
def test_a_key_of_another_list_is_refused(store: SqlStore, key: Key) -> None:
    with pytest.raises(CursorInvalid):
        store.job_page(JobFilter(), JobOrder(JobOrderField.CREATED_AT), Window(5, after=key))


def test_a_number_that_no_row_can_have_is_only_beyond_all(store: SqlStore, jobs: list[Job]) -> None:
    page = store.job_page(JobFilter(), JobOrder(JobOrderField.GPUS, descending=False), Window(99, after=(2**40, "")))
    assert page.rows == []


def test_entries_come_in_the_order_in_which_they_were_first_written(store: SqlStore) -> None:
    run = saved(store).run
    names = ["c", "a", "b", "d"]
    for name in names:
        store.commit(Changes(entries=[an_entry(name, run, at=AT)]), at=AT)
    store.commit(Changes(entries=[an_entry("c", run, count=5)]), at=AT)
    first = store.entry_page(EventFilter(), Window(3))
    assert [entry.id for _, entry in first.rows] == names[:3]
    assert (first.has_next, first.has_previous) == (True, False)
    rest = store.entry_page(EventFilter(), Window(3, after=first.rows[-1][0]))
    assert ([entry.id for _, entry in rest.rows], rest.has_next, rest.has_previous) == (names[3:], False, True)
    last = store.entry_page(EventFilter(), Window(2, backward=True))
    assert ([entry.id for _, entry in last.rows], last.has_previous) == (names[2:], True)
