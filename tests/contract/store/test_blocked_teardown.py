"""Jobs whose teardown is blocked are found by that reason, by an index, and live too."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from alembic import command
from sqlalchemy import text

from starforge.adapters.store import SqlStore, migrate
from starforge.adapters.store.engine import Database
from starforge.adapters.store.migrate import alembic_config
from starforge.api.context import Context, Services
from starforge.api.feed.hub import Hub
from starforge.api.jobs.subscriptions import _Jobs
from starforge.api.transport.source import Source
from starforge.domain.changes import Aspect, Changes
from starforge.domain.job import Job, JobOutcome, end, finish, move
from starforge.domain.job import JobState as State
from starforge.domain.names import JobId
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.reason import ObjectRef, ReasonCode, reason
from starforge.domain.rights import Caller, Role
from starforge.domain.teardown import STUCK, RemainingObject, looked
from tests.contract.store.examples import AT, ME, a_job, after, save
from tests.contract.store.many import fill
from tests.contract.store.test_plans import plan, reads_every_job
from tests.unit.api.feeding import Ears, Table

LEFT = (RemainingObject(ObjectRef("RayJob", "train", "jobs"), AT, ("ray.io/rayjob-finalizer",)),)
BLOCKED = JobFilter(reasons=(ReasonCode.TEARDOWN_BLOCKED,))
BOTH = JobFilter(reasons=(ReasonCode.TEARDOWN_BLOCKED, ReasonCode.OOM_KILLED))


def ending(number: int) -> Job:
    """A job that ended with OOM_KILLED and whose cluster is to go."""
    started = move(move(move(a_job(number), State.PACKAGING, AT), State.LAUNCHING, AT), State.PENDING, AT)
    return finish(started, JobOutcome.FAILED, reason(ReasonCode.OOM_KILLED, "Too much.", AT), AT)


def after_a_look(job: Job, left: tuple[RemainingObject, ...], seconds: float) -> Job:
    teardown = job.attempt.teardown
    assert teardown is not None
    return job.with_attempt(replace(job.attempt, teardown=looked(teardown, left, after(seconds))))


def held(number: int) -> Job:
    return after_a_look(after_a_look(ending(number), LEFT, 0), LEFT, STUCK.total_seconds() + 1)


def found(store: SqlStore, which: JobFilter) -> list[JobId]:
    return sorted(job.id for _, job in store.job_page(which, JobOrder(), Window(99)).rows)


def test_the_filter_finds_jobs_whose_teardown_is_blocked(store: SqlStore) -> None:
    save(store, held(1), ending(2), a_job(3))
    assert found(store, BLOCKED) == ["job-0001"]
    assert found(store, BOTH) == ["job-0001", "job-0002"]
    assert found(store, JobFilter(reasons=(ReasonCode.OOM_KILLED,))) == ["job-0001", "job-0002"]
    assert store.job_count(BLOCKED, at_most=9) == 1
    free = end(after_a_look(replace(held(1), revision=1), (), 90), after(90))
    save(store, free)
    assert found(store, BLOCKED) == []


@pytest.mark.parametrize("which", [BLOCKED, BOTH])
def test_it_is_answered_by_indexes(store: SqlStore, which: JobFilter) -> None:
    fill(store, 4000)
    save(store, held(1))
    with store.database.writing() as connection:
        connection.execute(text("ANALYZE"))
    for ask in (lambda: store.job_count(which, at_most=9), lambda: store.job_page(which, JobOrder(), Window(9))):
        steps = plan(store, ask)
        assert any("job_by_teardown_reason" in step for step in steps)
        assert not [step for step in steps if reads_every_job(step)]


def test_what_was_blocked_before_the_upgrade_is_found(empty_url: str) -> None:
    database = Database(empty_url)
    try:
        migrate(empty_url)
        store = SqlStore(empty_url)
        save(store, held(1), ending(2), a_job(3))
        store.close()
        with database.writing() as connection:
            command.downgrade(alembic_config(connection), "0006")
    finally:
        database.close()
    migrate(empty_url)
    store = SqlStore(empty_url)
    assert found(store, BLOCKED) == ["job-0001"]
    store.close()


def test_a_live_filter_tells_who_comes_in_and_who_leaves(store: SqlStore) -> None:
    """As the rows of the feed tell them, with what the table has."""
    ports = cast("Ports", type("OnlyStore", (), {"store": store})())

    async def told() -> list[list[str]]:
        services = Services(ports, Hub(Table(), Ears().hear), retention_s=60)
        context = Context(Caller(ME, Role.ADMIN), services, datetime.now(UTC), 0, subscription=True)
        live, kinds = _Jobs(context, BLOCKED, Source(), resumed=False), list[list[str]]()
        for job in (ending(1), replace(held(1), revision=1), after_a_look(replace(held(1), revision=2), (), 90)):
            _, head = store.feed_bounds()
            changes = Changes()
            changes.job(job, Aspect.TEARDOWN)
            store.commit(changes, at=AT)
            kinds.append([one.change.kind for one in await live.tell(store.feed(after=head, limit=9))])
            live.forget()
        services.close()
        return kinds

    assert asyncio.run(told()) == [[], ["UPDATED"], ["REMOVED"]]
