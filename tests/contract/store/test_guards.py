"""A commit is all or nothing, and refused when somebody else was faster."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Aspect, Changes, IdempotencyRecord
from starforge.domain.errors import NotFound, StaleRevision
from starforge.domain.job import JobState, move
from starforge.domain.names import JobId, RunKey
from tests.contract.store.examples import AT, a_command, a_job, after, an_entry, save, saved


def test_a_job_that_was_changed_meanwhile_is_stale(store: SqlStore) -> None:
    job = saved(store)
    save(store, replace(job, updated_at=after(1)))
    with pytest.raises(StaleRevision, match="job-0001"):
        save(store, job)
    assert store.job(job.id) == replace(job, updated_at=after(1), revision=2)


def test_a_job_is_created_once(store: SqlStore) -> None:
    job = saved(store)
    with pytest.raises(StaleRevision):
        save(store, replace(job, revision=0))


def test_a_job_that_does_not_exist_cannot_be_replaced(store: SqlStore) -> None:
    with pytest.raises(StaleRevision):
        save(store, replace(a_job(), revision=3))


def test_nothing_of_a_refused_commit_is_written(store: SqlStore) -> None:
    job, new = saved(store), a_job(2)
    changes = Changes(commands=[a_command("c", new)], entries=[an_entry("e", new.run)])
    changes.job(new, Aspect.STATE)
    changes.job(replace(job, revision=9), Aspect.STATE)
    with pytest.raises(StaleRevision):
        store.commit(changes, at=AT)
    assert store.job(new.id) is None
    assert store.entries(["e"]) == {}
    assert store.due(at=AT, limit=9) == []
    assert (store.feed_bounds(), len(store.feed(after=0, limit=9))) == ((0, 1), 1)


def test_an_idempotency_key_is_used_once(store: SqlStore) -> None:
    job, new = saved(store), a_job(2)
    record = IdempotencyRecord("vision", "submitJob", "k", "sha", job.id, 1, AT)
    store.commit(Changes(idempotency=[record]), at=AT)
    changes = Changes(idempotency=[replace(record, body_sha256="other")])
    changes.job(new, Aspect.STATE)
    with pytest.raises(StaleRevision, match="'k'"):
        store.commit(changes, at=AT)
    assert store.job(new.id) is None
    assert store.idempotency("vision", "submitJob", "k") == record


def test_what_is_written_about_a_job_needs_the_job(store: SqlStore) -> None:
    with pytest.raises(NotFound, match="job-unknown"):
        store.commit(Changes(entries=[an_entry("e", RunKey(JobId("job-unknown"), 1))]), at=AT)
    assert store.feed_bounds() == (0, 0)


def test_a_change_is_seen_by_other_processes(open_store: Callable[[], SqlStore]) -> None:
    one, other = open_store(), open_store()
    job = saved(one)
    assert other.job(job.id) == job
    save(other, move(job, JobState.PACKAGING, after(1)))
    found = one.job(job.id)
    assert found is not None
    assert (found.state, found.revision) == (JobState.PACKAGING, 2)
