"""Commands that are cut anywhere, doubled, taken over, or fail for ever."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.perform import LEASE_S, PARK_AFTER, backoff_s, perform
from starforge.domain.actions.teardown import teardown
from starforge.domain.errors import FleetUnavailable, StoreUnavailable
from starforge.domain.job import Job, JobOutcome, JobState
from starforge.domain.names import CommandId
from starforge.domain.observation import RunPhase
from starforge.domain.reason import ReasonCode
from starforge.domain.teardown import TeardownState
from starforge.domain.timeline import CommandFailed, CommandKind, Severity
from tests.unit.actions.fakes import START, Crash, Faults
from tests.unit.actions.world import ANN, World, head

NewWorld = Callable[[], World]
SUCCESS = [
    JobState.SUBMITTED,
    JobState.PACKAGING,
    JobState.LAUNCHING,
    JobState.PENDING,
    JobState.RUNNING,
    JobState.FINISHING,
    JobState.SUCCEEDED,
]


def whole_life(world: World) -> Job:
    """From submit to the end, with whatever fault is armed; workers come back whenever one was cut."""
    job = world.submit()
    until(world, lambda: world.job(job).state is JobState.PENDING)
    world.see(job, RunPhase.RUNNING, head())
    world.say(job, "hello", world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    until(world, lambda: world.job(job).ended)
    return world.job(job)


def until(world: World, there: Callable[[], bool]) -> None:
    for _ in range(60):
        try:
            world.work()
        except (Crash, StoreUnavailable):
            continue
        if there():
            return
        world.clock.forward(10)
    raise AssertionError("it does not come")


def armed(world: World, at: int, error: Callable[[], BaseException]) -> World:
    world.faults.at, world.faults.error = at, error
    return world


def as_it_should_be(world: World, job: Job) -> None:
    assert job.state is JobState.SUCCEEDED
    assert job.attempt.outcome is JobOutcome.SUCCEEDED
    assert job.attempt.exit_code == 0
    assert job.attempt.logs_archived_at
    assert job.attempt.released_at
    assert job.attempt.teardown is not None
    assert job.attempt.teardown.state is TeardownState.RELEASED
    assert world.states(job.id) == SUCCESS
    assert world.fleet.orders == {}
    assert {order.run for order in world.fleet.launches} == {job.run}
    assert sorted(key.split("/")[0] for key in world.objects.objects) == ["capsules", "code", "logs", "logs", "logs"]
    assert [line.text for line in world.log(job.id)] == ["hello"]
    assert world.due() == []
    assert all(pod.gone_at for pod in world.pods(job.id))


def test_a_life_that_nothing_disturbs(world: World) -> None:
    as_it_should_be(world, whole_life(world))
    assert len(world.fleet.launches) == 1
    positions = [row.position for row in world.feed()]
    assert positions == list(range(1, len(positions) + 1))
    assert [row.position for row in world.published] == positions


@pytest.mark.parametrize(
    ("error", "every"),
    [(lambda: FleetUnavailable("No route to it."), 3), (lambda: RuntimeError("a defect"), 3)],
    ids=["outage", "defect"],
)
def test_a_life_that_is_cut_anywhere_ends_as_if_it_were_not(
    new_world: NewWorld, error: Callable[[], BaseException], every: int
) -> None:
    for at in steps_of_workers(new_world())[::every]:
        world = armed(new_world(), at, error)
        job = whole_life(world)
        assert world.faults.hit is not None
        as_it_should_be(world, job)


def steps_of_workers(world: World) -> list[int]:
    """Numbers of the steps that workers do: submit is the caller's to repeat, the observer is cut in test_observe."""
    numbers: list[int] = []

    def worked() -> None:
        start = world.faults.count
        world.work()
        numbers.extend(range(start + 1, world.faults.count + 1))

    job = world.submit()
    worked()
    world.see(job, RunPhase.RUNNING, head())
    world.say(job, "hello", world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    worked()
    assert world.job(job).ended
    return numbers


def test_every_command_twice_changes_nothing(world: World) -> None:
    job = world.submit()
    for command in list(world.nudged):
        perform(world.ports, command)
        assert not perform(world.ports, command)
    as_it_should_be_after = whole_life(world)
    assert world.job(job).state is JobState.PENDING
    assert as_it_should_be_after.state is JobState.SUCCEEDED


def test_a_command_that_is_leased_is_left_alone(world: World) -> None:
    world.submit()
    (command,) = world.due()
    world.take(command)
    assert not perform(world.ports, command)
    world.clock.forward(LEASE_S + 1)
    assert perform(world.ports, command)


def test_a_worker_whose_lease_was_taken_over_changes_nothing_more(world: World) -> None:
    job = world.submit()

    def overtaken() -> None:
        world.fleet.during_launch = None
        world.clock.forward(LEASE_S + 1)
        world.work()

    world.fleet.during_launch = overtaken
    world.work()
    assert world.job(job).state is JobState.PENDING
    assert world.states(job) == SUCCESS[:4]
    assert list(world.fleet.orders) == [world.run(job)]
    assert not [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]


def test_an_outage_is_told_once_holds_the_job_and_ends_by_itself(world: World) -> None:
    job = world.submit()
    world.fleet.down = "The API server does not answer."
    world.settle(120)
    held = world.job(job)
    assert held.state is JobState.LAUNCHING
    assert held.attempt.reason is not None
    assert held.attempt.reason.code is ReasonCode.API_UNAVAILABLE
    revision = held.revision
    world.fleet.down = None
    world.settle(31)
    after = world.job(job)
    assert after.state is JobState.PENDING
    assert after.attempt.reason is None
    failures = [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]
    assert [entry.severity for entry in failures] == [Severity.WARNING]
    assert len(world.fleet.orders) == 1
    assert after.revision > revision


def test_an_object_store_that_is_down_holds_the_packaging(world: World) -> None:
    world.objects.down = True
    job = world.submit()
    world.settle(60)
    held = world.job(job)
    assert held.state is JobState.PACKAGING
    assert held.attempt.reason is not None
    assert held.attempt.reason.code is ReasonCode.OBJECT_STORE_UNAVAILABLE
    assert held.attempt.reason.since <= START + timedelta(seconds=10)
    world.objects.down = False
    world.settle(31)
    assert world.job(job).state is JobState.PENDING


def test_an_outage_while_it_runs_is_no_reason_of_the_job(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN, grace_s=3600))
    world.fleet.down = "Nobody there."
    world.settle(40)
    assert world.job(job).state is JobState.RUNNING
    assert world.job(job).attempt.reason is None
    world.fleet.down = None
    world.settle(31)
    assert len(world.fleet.stops) == 1


def test_waiting_grows_up_to_half_a_minute() -> None:
    assert [backoff_s(tries) for tries in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_packaging_that_fails_for_ever_is_parked_and_ends_the_job(world: World) -> None:
    world.packer.broken = True
    job = world.submit()
    world.settle(200)
    after = world.job(job)
    assert after.state is JobState.FAILED
    assert after.attempt.reason is not None
    assert after.attempt.reason.code is ReasonCode.INTERNAL
    assert "RuntimeError" in after.attempt.reason.message
    (failure,) = [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]
    assert failure.detail == CommandFailed(CommandKind.PACKAGE, PARK_AFTER, parked=True)
    assert failure.count == PARK_AFTER
    assert world.fleet.deletes == []


def test_a_command_that_kills_its_worker_each_time_is_parked_and_ends_the_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tries are counted when they begin, so that nobody has to live on to count them."""
    job, killed = world.submit(), 0

    def die(*_: object) -> None:
        raise Crash

    monkeypatch.setattr(world.packer, "pack_files", die)
    while not world.job(job).decided:
        try:
            world.work()
        except Crash:
            killed += 1
        world.clock.forward(LEASE_S + 1)
    assert killed == PARK_AFTER
    world.settle(5)
    after = world.job(job)
    assert after.state is JobState.FAILED
    assert after.attempt.reason is not None
    assert after.attempt.reason.code is ReasonCode.INTERNAL
    assert "its worker ended" in after.attempt.reason.message
    (failure,) = [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]
    assert isinstance(failure.detail, CommandFailed)
    assert failure.detail.parked


def test_a_removal_that_kills_its_worker_each_time_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.finishing()
    delete = world.fleet.delete

    def die(*_: object) -> None:
        raise Crash

    monkeypatch.setattr(world.fleet, "delete", die)
    for _ in range(PARK_AFTER + 2):
        with suppress(Crash):
            world.work()
        world.clock.forward(LEASE_S + 1)
    assert world.job(job).state is JobState.FINISHING
    monkeypatch.setattr(world.fleet, "delete", delete)
    world.settle(5)
    as_it_should_be(world, world.job(job))


def test_a_command_whose_job_can_not_be_read_is_parked_alone(world: World) -> None:
    job, other = world.submit(), world.submit()
    with world.sql.database.writing() as connection:
        connection.exec_driver_sql("UPDATE attempt SET document = '{}' WHERE job_id = ?", (job,))
    world.settle(200)
    assert world.job(other).state is JobState.PENDING
    with world.sql.database.reading() as connection:
        rows = connection.exec_driver_sql("SELECT parked_at, error FROM command WHERE job_id = ?", (job,)).all()
    ((parked_at, error),) = rows
    assert parked_at
    assert "ValidationError" in error
    (failure,) = [entry for entry in world.entries(job) if isinstance(entry.detail, CommandFailed)]
    assert failure.severity is Severity.ERROR
    assert world.due() == []


def test_a_command_of_a_newer_version_is_left_to_that(world: World) -> None:
    job = world.submit()
    (command,) = world.due()
    with world.sql.database.writing() as connection:
        connection.exec_driver_sql("UPDATE command SET kind = 'DANCE' WHERE id = ?", (command,))
    assert world.due() == []
    assert not perform(world.ports, command)
    assert world.job(job).state is JobState.SUBMITTED


def test_a_message_that_comes_three_times_and_one_of_no_command_change_nothing(world: World) -> None:
    job = world.submit()
    (command,) = world.nudged
    assert [perform(world.ports, command) for _ in range(3)] == [True, False, False]
    assert not perform(world.ports, CommandId("nonsense"))
    assert world.states(job) == SUCCESS[:3]


def test_giving_up_is_one_transaction(new_world: NewWorld) -> None:
    def life(world: World) -> JobState:
        world.packer.broken = True
        job = world.submit()
        until(world, lambda: world.job(job).ended)
        return world.job(job).state

    calm = new_world()
    assert life(calm) is JobState.FAILED
    for at in range(calm.faults.count - 14, calm.faults.count + 1):
        world = armed(new_world(), at, Crash)
        assert life(world) is JobState.FAILED


def test_giving_up_under_a_lease_that_has_passed_on_is_left_to_the_new_holder(world: World) -> None:
    world.packer.broken = True
    job = world.submit()
    for _ in range(PARK_AFTER - 1):
        world.work()
        world.clock.forward(31)
    (command,) = world.due()

    def taken_over() -> None:
        world.clock.forward(LEASE_S + 1)
        world.take(command, by="other")

    world.store.interfere = [taken_over]
    world.faults.count = 0
    assert perform(world.ports, command)
    assert world.faults.count == 1  # one try to commit: more of them could not help
    assert world.job(job).state is JobState.PACKAGING


def test_a_stop_that_fails_for_ever_ends_as_was_decided(world: World) -> None:
    job = world.running()
    cancel(world.ports, job, Wish(ANN, grace_s=3600))
    world.fleet.broken = True
    world.settle(200)
    assert world.job(job).attempt.outcome is JobOutcome.CANCELED
    world.fleet.broken = False
    world.settle(60)
    assert world.job(job).state is JobState.CANCELED


def test_an_archive_that_fails_for_ever_lets_the_cluster_go_and_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.finishing()
    monkeypatch.setattr(world.objects, "fetch", lambda key, into: into.write_bytes(b"something else"))
    world.settle(200)
    after = world.job(job)
    assert after.state is JobState.SUCCEEDED
    assert after.attempt.archive is not None
    assert after.attempt.archive.sha256 is None
    assert after.attempt.archive.reason is not None
    assert after.attempt.archive.reason.code is ReasonCode.INTERNAL
    assert world.fleet.orders == {}
    assert [line.text for line in world.log(job)] == ["hello"]


def test_a_removal_that_fails_is_told_as_blocked_and_goes_on(world: World) -> None:
    job = world.finishing()
    world.fleet.broken = True
    world.settle(300)
    blocked = world.job(job)
    assert blocked.state is JobState.FINISHING
    assert blocked.attempt.teardown is not None
    assert blocked.attempt.teardown.state is TeardownState.BLOCKED
    assert blocked.attempt.teardown.reason is not None
    assert blocked.attempt.teardown.reason.code is ReasonCode.TEARDOWN_BLOCKED
    world.fleet.broken = False
    world.settle(31)
    as_it_should_be(world, world.job(job))


def test_released_and_archived_in_either_order(world: World) -> None:
    job = world.finishing()
    world.objects.down = True
    world.settle(10)
    held = world.job(job)
    assert held.state is JobState.FINISHING
    assert held.attempt.released_at
    assert held.attempt.logs_archived_at is None
    assert world.fleet.orders == {}
    world.objects.down = False
    world.settle(31)
    as_it_should_be(world, world.job(job))


def test_a_stale_command_of_another_attempt_does_nothing(world: World) -> None:
    job = world.finishing()
    (command,) = world.due()
    lease = world.take(command)
    other = replace(lease, command=replace(lease.command, run=replace(lease.command.run, attempt=2)))
    teardown(world.ports, other)
    assert world.fleet.deletes == []
    assert world.job(job).state is JobState.FINISHING


def test_faults_count_from_one() -> None:
    faults = Faults(2)
    faults.step("one")
    with pytest.raises(Crash):
        faults.step("two")
    assert faults.hit == "two"
    faults.step("three")
