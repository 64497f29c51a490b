"""One key, many callers: one job, whichever of the mutations it is sent by, on each database."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.actions.submit import Submission, SubmitStatus, submit
from starforge.domain.actions.submit_many import BatchErrorPolicy, submit_many
from starforge.domain.changes import Aspect, Changes, CodeRecord, IdempotencyRecord, Upload
from starforge.domain.errors import Conflict, StaleRevision
from starforge.domain.names import Digest, JobId
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, a_job, after, save
from tests.unit.actions.world import ANN, DRAFT, FILES, World

CALLERS, LIMIT_S = 50, 240
Processes = Callable[[], list[Ports]]


@pytest.fixture
def processes(open_store: Callable[[], SqlStore], tmp_path: Path) -> Processes:
    """What several gateways would have: connections of their own to one database."""

    def opened() -> list[Ports]:
        worlds = [World(tmp_path, open_store()) for _ in range(4)]
        return [replace(world.ports, random=lambda: secrets.token_hex(16)) for world in worlds]

    return opened


def test_fifty_calls_with_one_key_and_body_make_one_job(processes: Processes, store: SqlStore) -> None:
    ports = processes()
    what = Submission(DRAFT, FILES, "key")
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = [pool.submit(submit, ports[number % len(ports)], what, ANN) for number in range(CALLERS)]
        done = [call.result(LIMIT_S) for call in calls]
    assert sorted(one.status for one in done) == [SubmitStatus.CREATED] + [SubmitStatus.REPLAYED] * (CALLERS - 1)
    assert len({one.job.id for one in done}) == 1
    assert store.job_count(JobFilter(), at_most=99) == 1


def test_of_fifty_calls_with_two_bodies_one_body_wins(processes: Processes, store: SqlStore) -> None:
    ports = processes()

    def call(number: int) -> JobId | None:
        what = Submission(replace(DRAFT, name=f"body-{number % 2}"), FILES, "key")
        try:
            return submit(ports[number % len(ports)], what, ANN).job.id
        except Conflict:
            return None

    with ThreadPoolExecutor(CALLERS) as pool:
        done = list(pool.map(call, range(CALLERS), timeout=LIMIT_S))
    assert done.count(None) == CALLERS // 2
    assert len(set(done) - {None}) == 1
    assert store.job_count(JobFilter(), at_most=99) == 1


def test_batches_with_the_same_keys_in_other_orders_make_each_job_once(processes: Processes, store: SqlStore) -> None:
    ports = processes()
    items = [Submission(replace(DRAFT, name=f"n{number}"), FILES, f"k{number}") for number in range(30)]

    def call(number: int) -> set[tuple[str, JobId]]:
        mine = items[number % 30 :] + items[: number % 30]
        done = submit_many(ports[number % len(ports)], mine[:: 1 - 2 * (number % 2)], ANN, BatchErrorPolicy.INDEPENDENT)
        return {(one.job.spec.name, one.job.id) for one in done if one.job}

    with ThreadPoolExecutor(CALLERS) as pool:
        found = list(pool.map(call, range(CALLERS), timeout=LIMIT_S))
    assert all(one == found[0] for one in found)
    assert len(found[0]) == 30
    assert store.job_count(JobFilter(), at_most=99) == 30


def record(key: str, *, seconds: float = 0, project: str = "vision", mutation: str = "submitJob") -> IdempotencyRecord:
    return IdempotencyRecord(project, mutation, key, "0" * 64, a_job(1).id, 1, after(seconds))


def test_keys_are_found_together_by_project_and_mutation(store: SqlStore) -> None:
    save(store, a_job(1))
    there = [record("a"), record("b"), record("a", project="speech"), record("a", mutation="retryJob")]
    store.commit(Changes(idempotency=there), at=AT)
    wanted = [("vision", "a"), ("speech", "a"), ("vision", "none"), ("speech", "b")]
    with sent_by(store) as sent:
        found = store.idempotencies("submitJob", wanted)
    assert found == {("vision", "a"): there[0], ("speech", "a"): there[2]}
    assert len(sent) == 1
    assert store.idempotency("vision", "retryJob", "a") == there[3]


def test_a_key_that_is_taken_takes_back_all_of_its_transaction(store: SqlStore) -> None:
    save(store, a_job(1))
    store.commit(Changes(idempotency=[record("b")]), at=AT)
    changes = Changes(idempotency=[record("a"), record("b"), record("c")])
    changes.job(a_job(2), Aspect.STATE)
    with pytest.raises(StaleRevision):
        store.commit(changes, at=AT)
    assert store.idempotencies("submitJob", [("vision", "a"), ("vision", "c")]) == {}
    assert store.job(a_job(2).id) is None


def test_old_keys_are_forgotten_and_their_jobs_are_not(store: SqlStore) -> None:
    save(store, a_job(1))
    store.commit(Changes(idempotency=[record("old", seconds=-1), record("new")]), at=AT)
    assert store.prune_idempotency(before=AT) == 1
    assert list(store.idempotencies("submitJob", [("vision", "old"), ("vision", "new")])) == [("vision", "new")]
    assert store.prune_idempotency(before=AT) == 0
    assert store.job(a_job(1).id) is not None


def test_many_new_jobs_of_which_one_is_there_are_none(store: SqlStore) -> None:
    save(store, a_job(2))
    changes = Changes()
    for number in (1, 2, 3):
        changes.job(a_job(number), Aspect.STATE)
    with pytest.raises(StaleRevision):
        store.commit(changes, at=AT)
    assert sorted(store.jobs_by_id([a_job(number).id for number in (1, 2, 3)])) == [a_job(2).id]


def test_code_is_known_when_it_is_stored_or_announced(store: SqlStore) -> None:

    code, upload = CodeRecord(Digest("a" * 64), 1, 1, "b" * 64), Upload(Digest("c" * 64), "d" * 64, 1, 1, AT)
    store.commit(Changes(code=[code], uploads=[upload]), at=AT)
    assert store.known_code([code.digest, upload.digest, Digest("e" * 64)]) == {code.digest, upload.digest}
