"""Pages that are read while others insert jobs and change them: what was there all along is read once, in order."""

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes
from starforge.domain.job import Job, JobState, StateSpan
from starforge.domain.names import JobId
from starforge.domain.queries import JobFilter, JobOrder, JobOrderField, Key, Window
from tests.contract.store.examples import AT, a_job, a_spec, after, save

NUMBER = 60
STABLE = (JobOrderField.CREATED_AT, JobOrderField.NAME, JobOrderField.PRIORITY, JobOrderField.GPUS)
RUNNING = JobFilter(states=(JobState.RUNNING,))


def a_mixed_job(number: int, seed: random.Random) -> Job:
    spec = a_spec(seed.choice("abc"), priority=seed.randint(-2, 2), gpus=seed.randint(0, 3))
    job = a_job(number, spec, at=after(seed.randint(0, 20)))
    return in_state(replace(job, id=JobId(f"job-{seed.randrange(10**9):09}-{number}")), JobState.RUNNING)


def in_state(job: Job, state: JobState) -> Job:
    return job.with_attempt(replace(job.attempt, spans=(StateSpan(state, AT),), started_at=AT))


def walk(store: SqlStore, which: JobFilter, order: JobOrder, *, backward: bool) -> Iterator[Job]:
    key: Key | None = None
    while True:
        window = Window(3, before=key, backward=True) if backward else Window(3, after=key)
        page = store.job_page(which, order, window)
        yield from (job for _, job in (reversed(page.rows) if backward else page.rows))
        if not page.rows or not (page.has_previous if backward else page.has_next):
            return
        key = page.rows[0 if backward else -1][0]


def disturb(store: SqlStore, movable: list[JobId], stop: threading.Event) -> int:
    """Insert jobs everywhere and move others in and out of RUNNING, until told to stop; how many commits it made."""
    seed, numbers = random.Random(9), count(1000)
    for done in count():
        if stop.is_set() and done >= 20:
            return done
        save(store, a_mixed_job(next(numbers), seed))
        job = store.job(seed.choice(movable))
        assert job is not None
        changes = Changes()
        changes.job(in_state(job, seed.choice((JobState.RUNNING, JobState.FINISHING))))
        store.commit(changes, at=AT)
    raise AssertionError("count() does not end")


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("field", STABLE)
def test_nothing_is_read_twice_and_nothing_that_stayed_is_missed(
    store: SqlStore, field: JobOrderField, descending: bool, backward: bool
) -> None:
    seed = random.Random(field)
    jobs = [a_mixed_job(number, seed) for number in range(NUMBER)]
    save(store, *jobs)
    moved, stayed = [job.id for job in jobs[::3]], {job.id for i, job in enumerate(jobs) if i % 3}
    order, stop = JobOrder(field, descending), threading.Event()
    before = [job.id for _, job in store.job_page(RUNNING, order, Window(NUMBER)).rows if job.id in stayed]
    with ThreadPoolExecutor(1) as pool:
        disturbing = pool.submit(disturb, store, moved, stop)
        try:
            seen = [
                [job.id for job in walk(store, which, order, backward=backward)] for which in (RUNNING, JobFilter())
            ]
        finally:
            stop.set()
        assert disturbing.result(timeout=60) >= 20
    for ids in seen:
        assert len(ids) == len(set(ids))
        assert [one for one in ids if one in stayed] == (before[::-1] if backward else before)
    assert set(moved) <= set(seen[1])
