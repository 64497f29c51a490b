"""Many writers at once: positions stay contiguous, leases stay single, nothing is lost."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Aspect, Changes, NewCommand
from starforge.domain.errors import StaleRevision
from starforge.domain.names import CommandId, JobId
from starforge.domain.queries import FeedRow
from starforge.domain.timeline import CommandKind
from tests.contract.store.examples import AT, a_command, a_job, a_pod, after, an_entry, save, saved

WRITERS, COMMITS, LIMIT_S = 8, 50, 240


def test_readers_see_positions_in_order_and_without_a_gap(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(WRITERS // 2)]
    committed = threading.Event()
    total = WRITERS * (1 + 2 * COMMITS)

    def write(number: int) -> list[FeedRow]:
        store, told = stores[number % len(stores)], list[FeedRow]()
        job = a_job(number)
        for step in range(COMMITS + 1):
            changes = Changes()
            changes.job(replace(job, revision=step), Aspect.STATE)
            changes.extend([an_entry(f"{number}-{step}", job.run)] if step else [])
            told += store.commit(changes, at=after(step))
            committed.set()
        return told

    def read() -> list[FeedRow]:
        store, rows = open_store(), list[FeedRow]()
        while len(rows) < total:
            committed.wait(LIMIT_S)
            committed.clear()
            rows += store.feed(after=len(rows), limit=97)
            if len(rows) < store.feed_bounds()[1]:
                committed.set()
            assert [row.position for row in rows] == list(range(1, len(rows) + 1))
        return rows

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        reader = pool.submit(read)
        told = [row for rows in pool.map(write, range(WRITERS), timeout=LIMIT_S) for row in rows]
        assert sorted(told, key=lambda row: row.position) == reader.result(LIMIT_S)


def test_a_command_is_taken_once_however_many_want_it(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(4)]
    jobs = [a_job(number) for number in range(10)]
    save(stores[0], *jobs, commands=tuple(a_command(f"c{job.id}", job) for job in jobs))
    with ThreadPoolExecutor(len(stores)) as pool:
        for job in jobs:
            start = threading.Barrier(len(stores))

            def take(store: SqlStore, job: JobId = job.id, start: threading.Barrier = start) -> bool:
                start.wait(LIMIT_S)
                return store.take(CommandId(f"c{job}"), token=str(id(store)), at=AT, lease_s=60) is not None

            assert sum(pool.map(take, stores)) == 1


def test_two_commands_of_a_job_are_never_taken_together(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(4)]
    kinds = list(CommandKind)[: len(stores)]
    jobs = [a_job(number) for number in range(10)]
    commands = tuple(a_command(f"{job.id}-{kind}", job, kind) for job in jobs for kind in kinds)
    save(stores[0], *jobs, commands=commands)
    with ThreadPoolExecutor(len(stores)) as pool:
        for job in jobs:
            start = threading.Barrier(len(stores))

            def take(number: int, job: JobId = job.id, start: threading.Barrier = start) -> bool:
                start.wait(LIMIT_S)
                name = CommandId(f"{job}-{kinds[number]}")
                return stores[number].take(name, token=str(number), at=AT, lease_s=60) is not None

            assert sum(pool.map(take, range(len(stores)))) == 1


def test_no_change_of_a_job_is_lost(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(4)]
    job = saved(stores[0])

    def write(store: SqlStore) -> int:
        done = 0
        while done < 10:
            found = store.job(job.id)
            assert found is not None
            changes = Changes()
            changes.job(replace(found, updated_at=after(found.revision)), Aspect.STATE)
            try:
                store.commit(changes, at=AT)
                done += 1
            except StaleRevision:
                continue
        return done

    with ThreadPoolExecutor(len(stores)) as pool:
        assert sum(pool.map(write, stores, timeout=LIMIT_S)) == 40
    assert stores[0].job(job.id) == replace(job, revision=41, updated_at=after(40))


def test_commits_that_wait_for_each_other_both_succeed(open_store: Callable[[], SqlStore]) -> None:
    """Two writers that touch the same Pods in opposite orders: Postgres ends one of them, which is tried again."""
    stores = [open_store() for _ in range(2)]
    run = saved(stores[0]).run
    pods = [a_pod(f"u{number:02}") for number in range(40)]
    stores[0].commit(Changes(pods=[(run, pod) for pod in pods]), at=AT)
    start = threading.Barrier(len(stores))

    def write(number: int) -> None:
        changed = [replace(pod, restarts=number) for pod in pods]
        changes = Changes(pods=[(run, pod) for pod in (changed if number else changed[::-1])])
        for _ in range(4):
            start.wait(LIMIT_S)
            stores[number].commit(changes, at=AT)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2), timeout=LIMIT_S))
    found = stores[0].pods([run])[run]
    assert [pod.uid for pod in found] == [pod.uid for pod in pods]
    assert len({pod.restarts for pod in found}) == 1


def test_the_same_command_asked_for_at_once_is_one(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(4)]
    job = saved(stores[0])

    def ask(number: int) -> None:
        command = NewCommand(CommandId(f"c{number}"), CommandKind.LAUNCH, job.run, after(number))
        stores[number].commit(Changes(commands=[command]), at=AT)

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(ask, range(len(stores)), timeout=LIMIT_S))
    assert len(stores[0].due(at=AT, limit=9)) == 1
    assert len(stores[0].due(at=after(99), limit=9)) == 1
