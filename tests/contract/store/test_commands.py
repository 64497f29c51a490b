"""Commands: asked for once, leased to one worker at a time, fenced by the token of the lease."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes, Command, Lease, Retry
from starforge.domain.deadlines import ClockKind, grace
from starforge.domain.errors import Defect, StaleRevision
from starforge.domain.job import Ending, JobOutcome, JobState, advance, finish
from starforge.domain.names import CommandId
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.timeline import CommandKind
from tests.contract.store.examples import AT, a_command, a_job, after, save, saved, taken

C = CommandId("c")


@pytest.fixture
def asked(store: SqlStore) -> SqlStore:
    """A store with the command `c` of job 1, due at AT."""
    job = a_job()
    save(store, job, commands=(a_command("c", job),))
    return store


def test_commands_are_due_oldest_first_once_their_time_has_come(store: SqlStore) -> None:
    jobs = [a_job(number) for number in range(4)]
    dues = [after(2), after(1), after(1), after(9)]
    commands = tuple(a_command(f"c{n}", job, due_at=due) for n, (job, due) in enumerate(zip(jobs, dues, strict=True)))
    save(store, *jobs, commands=commands)
    assert store.due(at=after(0.999999), limit=9) == []
    assert store.due(at=after(2), limit=9) == ["c1", "c2", "c0"]
    assert store.due(at=after(2), limit=2) == ["c1", "c2"]


def test_a_command_is_taken_by_one(asked: SqlStore) -> None:
    job = a_job()
    lease = asked.take(C, token="t", at=AT, lease_s=60)
    assert lease == Lease(Command(C, CommandKind.PACKAGE, job.run, 1), "t", after(60))
    assert asked.take(C, token="u", at=after(59), lease_s=60) is None
    assert asked.due(at=after(59), limit=9) == []


def test_a_command_is_not_taken_before_its_time_or_when_unknown(asked: SqlStore) -> None:
    assert asked.take(C, token="t", at=after(-1), lease_s=60) is None
    assert asked.take(CommandId("unknown"), token="t", at=AT, lease_s=60) is None


def test_a_lease_that_ran_out_passes_on_and_its_holder_is_fenced_off(asked: SqlStore) -> None:
    first = taken(asked, "c")
    assert asked.due(at=after(60), limit=9) == [C]
    second = taken(asked, "c", token="u", seconds=60)
    assert second.command.tries == 2
    with pytest.raises(StaleRevision, match="lease"):
        asked.commit(Changes(done=True), at=after(61), lease=first)
    asked.commit(Changes(done=True), at=after(62), lease=second)
    assert asked.due(at=after(999), limit=9) == []
    with pytest.raises(StaleRevision):
        asked.commit(Changes(), at=after(63), lease=second)


def test_a_lease_that_ran_out_is_over_even_if_nobody_else_has_it(asked: SqlStore) -> None:
    lease = taken(asked, "c")
    asked.commit(Changes(), at=after(59), lease=lease)
    with pytest.raises(StaleRevision, match="lease"):
        asked.commit(Changes(done=True), at=after(60), lease=lease)
    assert asked.due(at=after(60), limit=9) == [C]


def test_a_lease_is_renewed_by_whoever_holds_it_still(asked: SqlStore) -> None:
    lease = taken(asked, "c")
    assert asked.renew(lease, at=after(50), lease_s=60)
    assert asked.take(C, token="u", at=after(109), lease_s=60) is None
    asked.commit(Changes(), at=after(109), lease=lease)
    assert not asked.renew(lease, at=after(110), lease_s=60)
    other = asked.take(C, token="u", at=after(111), lease_s=60)
    assert other is not None
    assert not asked.renew(lease, at=after(112), lease_s=60)
    asked.commit(Changes(done=True), at=after(113), lease=other)
    assert not asked.renew(other, at=after(114), lease_s=60)


def test_a_holder_may_commit_more_than_once_before_it_is_done(asked: SqlStore) -> None:
    lease = taken(asked, "c")
    asked.commit(Changes(), at=after(1), lease=lease)
    asked.commit(Changes(done=True), at=after(2), lease=lease)


def test_commands_of_one_job_are_worked_on_one_after_the_other(store: SqlStore) -> None:
    job, other = a_job(1), a_job(2)
    commands = (a_command("c", job), a_command("d", job, CommandKind.CANCEL), a_command("e", other))
    save(store, job, other, commands=commands)
    lease = taken(store, "c")
    assert store.take(CommandId("d"), token="u", at=after(1), lease_s=60) is None
    taken(store, "e")
    store.commit(Changes(done=True), at=after(2), lease=lease)
    taken(store, "d", seconds=2)


def test_one_open_command_for_each_run_and_kind_and_it_is_brought_forward(store: SqlStore) -> None:
    job = a_job()
    save(store, job, commands=(a_command("c", job, due_at=after(60)),))
    store.commit(Changes(commands=[a_command("d", job, due_at=after(90))]), at=AT)
    store.commit(Changes(commands=[a_command("e", job, due_at=after(30))]), at=AT)
    assert store.due(at=after(29), limit=9) == []
    assert store.due(at=after(999), limit=9) == [C]
    assert store.due(at=after(30), limit=9) == [C]


def test_after_it_is_done_it_can_be_asked_for_again(asked: SqlStore) -> None:
    again = Changes(done=True, commands=[a_command("d", a_job(), due_at=after(5))])
    asked.commit(again, at=after(1), lease=taken(asked, "c"))
    assert asked.due(at=after(5), limit=9) == ["d"]


def test_a_failed_try_is_counted_and_one_that_is_only_not_done_is_not(asked: SqlStore) -> None:
    asked.commit(Changes(retry=Retry(after(10), "No answer.")), at=after(1), lease=taken(asked, "c"))
    assert asked.take(C, token="u", at=after(9), lease_s=60) is None
    second = taken(asked, "c", seconds=10)
    asked.commit(Changes(retry=Retry(after(20))), at=after(11), lease=second)
    third = taken(asked, "c", seconds=20)
    assert (second.command.tries, third.command.tries) == (2, 2)


def test_what_is_asked_for_during_a_lease_is_done_after_it(asked: SqlStore) -> None:
    lease = taken(asked, "c")
    asked.commit(Changes(commands=[a_command("d", a_job(), due_at=after(2))]), at=after(1), lease=None)
    asked.commit(Changes(done=True), at=after(3), lease=lease)
    assert asked.due(at=after(3), limit=9) == [C]
    again = taken(asked, "c", seconds=3)
    assert again.command.tries == 1
    asked.commit(Changes(retry=Retry(after(50))), at=after(4), lease=again)
    assert asked.due(at=after(49), limit=9) == []


def test_what_is_asked_for_during_a_lease_is_not_put_off_by_a_retry(asked: SqlStore) -> None:
    lease = taken(asked, "c")
    asked.commit(Changes(commands=[a_command("d", a_job(), due_at=after(2))]), at=after(1))
    asked.commit(Changes(retry=Retry(after(50))), at=after(3), lease=lease)
    assert asked.due(at=after(3), limit=9) == [C]


def test_a_parked_command_is_never_due_and_a_new_one_can_be_asked_for(asked: SqlStore) -> None:
    asked.commit(Changes(park="It fails every time."), at=after(1), lease=taken(asked, "c"))
    assert asked.take(C, token="u", at=after(999), lease_s=60) is None
    assert asked.due(at=after(999), limit=9) == []
    asked.commit(Changes(commands=[a_command("d", a_job())]), at=after(2))
    assert asked.due(at=after(2), limit=9) == ["d"]


@pytest.mark.parametrize("changes", [Changes(done=True), Changes(park="Why."), Changes(retry=Retry(AT))])
def test_only_a_lease_says_what_becomes_of_a_command(store: SqlStore, changes: Changes) -> None:
    with pytest.raises(Defect, match="lease"):
        store.commit(changes, at=AT)


def test_one_holder_observes_a_fleet(open_store: Callable[[], SqlStore]) -> None:
    one, other = open_store(), open_store()
    assert one.renew_observer("home", holder="a", at=AT, lease_s=15)
    assert not other.renew_observer("home", holder="b", at=after(14), lease_s=15)
    assert other.renew_observer("away", holder="b", at=after(14), lease_s=15)
    assert one.renew_observer("home", holder="a", at=after(14), lease_s=15)
    assert not other.renew_observer("home", holder="b", at=after(28), lease_s=15)
    assert other.renew_observer("home", holder="b", at=after(29), lease_s=15)
    assert not one.renew_observer("home", holder="a", at=after(30), lease_s=15)


def test_jobs_are_overdue_by_a_running_clock_or_an_ending(store: SqlStore) -> None:
    queued = saved(store, 1)
    running = advance(a_job(2), JobState.RUNNING, AT)
    ending = Ending(JobOutcome.CANCELED, reason(ReasonCode.CANCELED, "Canceled.", AT), after(30))
    stopping = running.with_attempt(replace(running.attempt, ending=ending))
    save(store, replace(stopping, revision=0))
    decided = finish(advance(a_job(3), JobState.RUNNING, AT), JobOutcome.FAILED, None, AT)
    save(store, decided)
    assert store.overdue(at=after(29), limit=9) == []
    assert store.overdue(at=after(600), limit=9) == ["job-0002", "job-0001"]
    assert store.overdue(at=after(600), limit=1) == ["job-0002"]
    later = grace(queued.attempt.clocks, [ClockKind.QUEUE], after(900))
    save(store, queued.with_attempt(replace(queued.attempt, clocks=later)))
    assert store.overdue(at=after(899), limit=9) == ["job-0002"]
