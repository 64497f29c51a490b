"""What the database keeps and knows of health."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck as Slow
from hypothesis import given, settings

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes, Retry
from starforge.domain.errors import StaleRevision
from starforge.domain.health import (
    PLATFORM,
    Access,
    AccessCheck,
    HealthCheck,
    HealthCheckKind,
    HealthReport,
    HealthStatus,
    HealthWrite,
    ObserverHeard,
    ObserverLease,
)
from starforge.domain.names import RunKey
from starforge.domain.queries import FeedKind, FeedRow
from starforge.domain.timeline import CommandKind
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, a_command, a_job, after, anything, save, taken

REPORT = HealthReport(
    PLATFORM,
    (HealthCheck(HealthCheckKind.OBJECT_STORE, HealthStatus.DOWN, "It is away.", AT, after(5), None),),
    after(5),
    access=Access(AT, (AccessCheck("create", "rayjobs.ray.io", allowed=None),)),
)


def write(store: SqlStore, report: HealthReport, *, told: bool = True) -> list[FeedRow]:
    return list(store.commit(Changes(health=[HealthWrite(report, told)]), at=AT))


def test_a_report_is_read_as_it_was_written_with_the_next_revision(store: SqlStore) -> None:
    assert store.health(at=AT).reports == {}
    write(store, REPORT)
    assert store.health(at=AT).reports == {PLATFORM: replace(REPORT, revision=1)}


def test_what_is_told_gets_a_row_of_the_feed(store: SqlStore) -> None:
    save(store, a_job())
    assert write(store, REPORT) == [FeedRow(2, AT, FeedKind.HEALTH, PLATFORM, None, None, 1)]
    assert write(store, replace(REPORT, revision=1), told=False) == []
    assert [row.kind for row in store.feed(after=0, limit=10)] == [FeedKind.JOB, FeedKind.HEALTH]


def test_of_two_who_checked_the_first_wins_and_the_other_writes_nothing(
    open_store: Callable[[], SqlStore],
) -> None:
    one, other = open_store(), open_store()
    write(one, REPORT)
    late = HealthWrite(replace(REPORT, checks=()), told=True)
    beside = HealthWrite(replace(REPORT, subject="fleet.home"), told=True)
    with pytest.raises(StaleRevision):
        other.commit(Changes(health=[beside, late]), at=AT)
    assert set(other.health(at=AT).reports) == {PLATFORM}
    write(other, replace(REPORT, revision=1))
    with pytest.raises(StaleRevision):
        write(one, replace(REPORT, revision=1))


@settings(max_examples=20, deadline=None, suppress_health_check=[Slow.function_scoped_fixture])
@given(report=anything(HealthReport))
def test_any_report_survives(store: SqlStore, report: HealthReport) -> None:
    known = store.health(at=AT).reports.get(report.subject)
    write(store, replace(report, revision=known.revision if known else 0))
    found = store.health(at=AT).reports[report.subject]
    assert replace(found, revision=0) == replace(report, revision=0)


def test_who_observes_and_what_they_hear(store: SqlStore) -> None:
    heard = ObserverHeard(AT, 0.25, "It does not answer.")
    store.note_heard("home", holder="one", heard=heard)  # nobody has it
    assert store.health(at=AT).observers == {}
    store.renew_observer("home", holder="one", at=AT, lease_s=15)
    assert store.health(at=AT).observers == {"home": ObserverLease("one", after(15))}
    store.note_heard("home", holder="one", heard=heard)
    store.note_heard("home", holder="two", heard=ObserverHeard())
    assert store.health(at=AT).observers["home"].heard == heard
    store.renew_observer("home", holder="one", at=after(5), lease_s=15)
    assert store.health(at=AT).observers == {"home": ObserverLease("one", after(20), heard)}


def test_commands_that_are_due_are_counted_and_those_that_nobody_does(store: SqlStore) -> None:
    jobs = [a_job(number) for number in range(1, 5)]
    due = [a_command(f"command-{number}", job, due_at=after(number)) for number, job in enumerate(jobs, 1)]
    save(store, *jobs, commands=tuple(due))
    assert store.health(at=AT).commands.due == 0
    queue = store.health(at=after(3)).commands
    assert (queue.due, queue.oldest_due_at, queue.waiting_since, queue.parked) == (3, after(1), after(1), 0)
    lease = taken(store, "command-1", seconds=3)
    queue = store.health(at=after(3)).commands
    assert (queue.due, queue.oldest_due_at, queue.waiting_since) == (3, after(1), after(2))
    store.commit(Changes(done=True), at=after(3), lease=lease)
    assert store.health(at=after(3)).commands.oldest_due_at == after(2)
    assert store.health(at=after(3)).commands.due == 2
    store.commit(Changes(retry=Retry(after(99), "no")), at=after(3), lease=taken(store, "command-2", seconds=3))
    assert store.health(at=after(3)).commands.due == 1


def test_parked_commands_are_told_newest_first(store: SqlStore) -> None:
    jobs = [a_job(number) for number in range(1, 4)]
    save(store, *jobs, commands=tuple(a_command(f"command-{n}", job) for n, job in enumerate(jobs, 1)))
    assert store.parked(limit=9) == []
    for number in (1, 2, 3):
        lease = taken(store, f"command-{number}", seconds=number)
        store.commit(Changes(park=f"error {number}"), at=after(number), lease=lease)
    found = store.parked(limit=2)
    assert [one.id for one in found] == ["command-3", "command-2"]
    assert (found[0].kind, found[0].run, found[0].tries) == (CommandKind.PACKAGE, RunKey(jobs[2].id, 1), 1)
    assert (found[0].last_tried_at, found[0].error) == (after(3), "error 3")
    queue = store.health(at=after(9)).commands
    assert (queue.due, queue.oldest_due_at, queue.parked) == (0, None, 3)


def test_health_is_a_few_statements_however_much_there_is(store: SqlStore) -> None:
    jobs = [a_job(number) for number in range(30)]
    save(store, *jobs, commands=tuple(a_command(f"command-{n}", job) for n, job in enumerate(jobs)))
    write(store, REPORT)
    with sent_by(store) as sent:
        store.health(at=AT)
    assert len(sent) == 4
