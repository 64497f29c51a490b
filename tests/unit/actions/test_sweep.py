"""What nobody needs goes, and what is gone is noticed; nothing is decided on silence."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.perform import LEASE_S, perform
from starforge.domain.actions.retry import Again, retry
from starforge.domain.actions.sweep import Finding, Step, sweep
from starforge.domain.errors import FleetUnavailable, StoreUnavailable
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import RayClusterView, RunPhase, RunSeen
from starforge.domain.queries import EventFilter, Window
from starforge.domain.reason import ObjectRef, ReasonCode, reason
from starforge.domain.teardown import RemainingObject, TeardownState
from starforge.domain.timeline import Entry, Severity, TeardownChanged
from tests.unit.actions.fakes import START, Crash
from tests.unit.actions.world import ANN, World, head

STRANGER = RunKey(JobId("job-nobody-knows"), 1)


def steps(findings: object) -> list[tuple[RunKey, Step]]:
    assert isinstance(findings, list)
    return [(one.run, one.step) for one in findings if isinstance(one, Finding)]


def appears(world: World, run: RunKey, **changed: object) -> None:
    """A run comes into being in the fleet that nobody launches now: like one that there is, but for what is given."""
    order = next(iter(world.fleet.launches))
    world.fleet.orders[run] = replace(order, run=run, **changed)  # type: ignore[arg-type]
    world.fleet.created[run] = world.clock()


def ended(world: World) -> JobId:
    job = world.finishing()
    world.settle(5)
    assert world.job(job).ended
    return job


def sweep_for(world: World, seconds: float) -> None:
    """Sweep as often as the beat does."""
    for _ in range(int(seconds / 120)):
        world.clock.forward(120)
        sweep(world.ports)


def told(world: World) -> list[Entry]:
    entries = [entry for _, entry in world.sql.entry_page(EventFilter(), Window(1000)).rows]
    return [entry for entry in entries if "should not be" in entry.message or entry.severity is Severity.WARNING]


def pictured(world: World, run: RunKey, phase: RunPhase, **rest: object) -> None:
    world.observer.observe([replace(RunSeen(run, phase, world.clock(), (head(),)), **rest)])  # type: ignore[arg-type]


def test_what_comes_after_the_release_is_removed_as_soon_as_it_is_seen(world: World) -> None:
    job = ended(world)
    run = world.run(job)
    appears(world, run)
    pictured(world, run, RunPhase.RUNNING)
    world.work()
    assert run not in world.fleet.orders
    assert "was released at" in told(world)[0].message


def test_so_is_a_run_of_an_attempt_before(world: World) -> None:
    job = ended(world)
    run = world.run(job)
    retry(world.ports, job, Again(ANN))
    appears(world, run)
    pictured(world, run, RunPhase.WAITING)
    world.work()
    assert run not in world.fleet.orders


def test_a_picture_that_came_late_of_what_is_gone_removes_nothing(world: World) -> None:
    job = ended(world)
    before = list(world.fleet.deletes)
    pictured(world, world.run(job), RunPhase.RUNNING)
    world.work()
    assert world.fleet.deletes == before
    assert told(world) == []


@pytest.mark.parametrize(
    "rest",
    [
        {"pods": (replace(head(), terminating=True),)},
        {"pods": (), "raycluster": RayClusterView("c", "ns", "u", deletion_requested_at=START)},
    ],
)
def test_what_is_on_its_way_out_is_left_alone(world: World, rest: dict[str, object]) -> None:
    job = ended(world)
    appears(world, world.run(job))
    pictured(world, world.run(job), RunPhase.ABSENT, **rest)
    world.work()
    assert world.run(job) in world.fleet.orders


def test_a_raycluster_alone_is_seen_too(world: World) -> None:
    job = ended(world)
    appears(world, world.run(job))
    pictured(world, world.run(job), RunPhase.ABSENT, pods=(), raycluster=RayClusterView("c", "ns", "u"))
    world.work()
    assert world.run(job) not in world.fleet.orders


def test_there_is_nothing_to_do_about_what_lives_and_what_is_gone(world: World) -> None:
    ended(world)
    job = world.running()
    world.clock.forward(1000)
    before = world.feed()
    assert sweep(world.ports) == []
    assert world.job(job).state is JobState.RUNNING
    assert world.feed() == before


def test_a_run_without_a_job_goes_when_it_was_so_twice(world: World) -> None:
    ended(world)
    appears(world, STRANGER)
    assert sweep(world.ports) == [], "it is too young: who launches it may be about to say so"
    world.clock.forward(120)
    assert steps(sweep(world.ports)) == [(STRANGER, Step.NOTE)]
    assert steps(sweep(world.ports)) == [(STRANGER, Step.NOTE)], "two sweeps at once are one"
    assert STRANGER in world.fleet.orders
    world.clock.forward(120)
    assert steps(sweep(world.ports)) == [(STRANGER, Step.REMOVE)]
    assert STRANGER not in world.fleet.orders
    (entry,) = told(world)
    assert (entry.run, entry.fleet, entry.count) == (None, "home", 1)
    assert "RayJob" in entry.message
    assert str(STRANGER) in entry.message
    assert isinstance(entry.detail, TeardownChanged)
    assert entry.detail.teardown.state is TeardownState.DELETING
    world.clock.forward(120)
    assert sweep(world.ports) == []


def test_what_was_a_stray_only_now_and_then_stays(world: World) -> None:
    ended(world)
    appears(world, STRANGER)
    world.clock.forward(120)
    sweep(world.ports)
    order = world.fleet.orders.pop(STRANGER)
    world.clock.forward(120)
    sweep(world.ports)
    world.fleet.orders[STRANGER] = order
    world.clock.forward(120)
    assert steps(sweep(world.ports)) == [(STRANGER, Step.NOTE)]


@pytest.mark.parametrize("installation", ["forge-another", None])
def test_what_may_be_another_installations_is_left_alone(world: World, installation: str | None) -> None:
    ended(world)
    appears(world, STRANGER, installation=installation)
    sweep_for(world, 1200)
    assert STRANGER in world.fleet.orders


def test_what_bears_no_installation_goes_if_its_job_is_ours(world: World) -> None:
    job = ended(world)
    appears(world, world.run(job), installation=None)
    sweep(world.ports)
    assert world.fleet.orders == {}


def test_an_attempt_that_the_job_does_not_have_goes_when_it_was_so_twice(world: World) -> None:
    job = world.running()
    newer = RunKey(job, 2)
    appears(world, newer)
    sweep_for(world, 240)
    assert newer not in world.fleet.orders
    assert world.run(job) in world.fleet.orders
    assert [entry.run for entry in told(world)] == [newer]


def test_an_earlier_attempt_goes_at_once_and_the_one_that_runs_stays(world: World) -> None:
    job = ended(world)
    first = world.run(job)
    retry(world.ports, job, Again(ANN))
    world.work()
    assert world.job(job).state is JobState.PENDING
    appears(world, first)
    assert steps(sweep(world.ports)) == [(first, Step.REMOVE)]
    assert list(world.fleet.orders) == [world.run(job)]
    assert "was released at" in told(world)[0].message


def test_a_launch_that_hung_beyond_its_lease_and_comes_after_the_release(world: World) -> None:
    """The worker is away in the call that creates the run while the job is canceled and ends, and then it dies."""
    job = world.submit()
    (packaging,) = world.due()
    perform(world.ports, packaging)
    assert world.job(job).state is JobState.LAUNCHING
    run = world.run(job)

    def hangs() -> None:
        world.fleet.during_launch = None
        order = world.fleet.orders.pop(run)  # the API server has not made it yet
        world.clock.forward(LEASE_S + 1)
        cancel(world.ports, job, Wish(ANN))
        world.settle(60)
        assert world.job(job).state is JobState.CANCELED
        assert world.job(job).attempt.released_at
        world.fleet.orders[run] = order
        world.fleet.created[run] = world.clock()
        raise Crash

    world.fleet.during_launch = hangs
    (launching,) = world.due()
    with pytest.raises(Crash):
        perform(world.ports, launching)
    assert run in world.fleet.orders, "it is there, and nobody looks after it any more"
    assert steps(sweep(world.ports)) == [(run, Step.REMOVE)]
    assert world.fleet.orders == {}
    assert world.job(job).state is JobState.CANCELED
    assert [entry.run for entry in told(world) if "should not be" in entry.message] == [run]


def test_a_teardown_that_ends_between_list_and_database_is_no_stray(world: World) -> None:
    job = world.finishing()
    listed = world.fleet.ours(world.sql.installation(new=""))
    world.settle(5)
    assert world.job(job).ended
    world.fleet.ours = lambda installation: listed  # type: ignore[method-assign]
    assert sweep(world.ports) == []
    assert told(world) == []


def test_what_is_being_torn_down_is_left_to_its_teardown(world: World) -> None:
    world.finishing()
    world.fleet.lasts = 1000
    world.settle(300)
    deletes = len(world.fleet.deletes)
    assert sweep(world.ports) == []
    assert len(world.fleet.deletes) == deletes


def test_a_stray_that_goes_is_waited_for_and_one_that_hangs_is_told_once(world: World) -> None:
    job = ended(world)
    run = world.run(job)
    appears(world, run)
    held = ObjectRef("RayJob", "digits", "training", "uid")
    world.fleet.held[run] = RemainingObject(held, world.clock(), ("a/b",))
    assert steps(sweep(world.ports)) == [(run, Step.GOING)]
    world.clock.forward(60)
    (finding,) = sweep(world.ports)
    assert finding.step is Step.HELD
    assert "is held by finalizer a/b" in finding.why
    before = len(world.feed())
    sweep_for(world, 600)
    assert len(world.feed()) == before
    (entry,) = told(world)
    assert isinstance(entry.detail, TeardownChanged)
    assert entry.detail.teardown.state is TeardownState.BLOCKED


def test_a_job_whose_run_was_deleted_while_nobody_watched_ends(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.RUNNING, head())
    run = world.run(job)
    world.fleet.orders.clear()
    world.fleet.looks[run] = world.picture(job, RunPhase.ABSENT)
    assert sweep(world.ports) == [], "it was launched a moment ago"
    world.clock.forward(61)
    assert steps(sweep(world.ports)) == [(run, Step.ASK)]
    world.settle(60)
    after = world.job(job)
    assert (after.state, after.attempt.outcome) == (JobState.FAILED, JobOutcome.FAILED)
    assert after.attempt.reason
    assert after.attempt.reason.code is ReasonCode.DELETED_OUTSIDE


def test_a_list_that_lacks_a_run_decides_nothing_if_a_look_finds_it(world: World) -> None:
    job = world.running()
    world.fleet.ours = lambda installation: []  # type: ignore[method-assign]
    world.clock.forward(61)
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.RUNNING, head())
    assert steps(sweep(world.ports)) == [(world.run(job), Step.ASK)]
    assert world.job(job).state is JobState.RUNNING


def test_a_refused_look_decides_nothing(world: World) -> None:
    job = world.running()
    world.fleet.ours = lambda installation: []  # type: ignore[method-assign]
    world.fleet.refuses_looks = reason(ReasonCode.PERMISSION, "no", START)
    world.clock.forward(61)
    sweep(world.ports)
    assert world.job(job).state is JobState.RUNNING


def test_nothing_is_decided_while_the_fleet_is_silent(world: World) -> None:
    job = world.running()
    appears(world, STRANGER)
    world.fleet.down = "away"
    for _ in range(5):
        world.clock.forward(120)
        with pytest.raises(FleetUnavailable):
            sweep(world.ports)
    world.fleet.down = None
    assert steps(sweep(world.ports)) == [(STRANGER, Step.NOTE)]
    assert world.job(job).state is JobState.RUNNING


@pytest.mark.parametrize("silent", ["jobs_by_id", "attempts", "strays", "note_strays", "job_page", "installation"])
def test_nothing_is_removed_while_the_database_is_silent(
    world: World, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(world)
    appears(world, STRANGER)
    appears(world, world.run(job))
    sweep_for(world, 120)
    appears(world, world.run(job))
    world.clock.forward(120)

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("away")

    monkeypatch.setattr(world.store, silent, away, raising=False)
    with pytest.raises(StoreUnavailable):
        sweep(world.ports)
    assert set(world.fleet.orders) == {STRANGER, world.run(job)}


def test_a_dry_run_only_looks(world: World) -> None:
    job = ended(world)
    appears(world, STRANGER)
    appears(world, world.run(job))
    world.clock.forward(1000)
    before = world.feed()
    for _ in range(3):
        found = dict(steps(sweep(world.ports, dry_run=True)))
        assert found == {STRANGER: Step.NOTE, world.run(job): Step.REMOVE}
        world.clock.forward(120)
    assert set(world.fleet.orders) == {STRANGER, world.run(job)}
    assert world.feed() == before


def test_a_refusal_to_remove_one_does_not_keep_the_others(world: World) -> None:
    ended(world)
    other = RunKey(JobId("job-another-stranger"), 1)
    appears(world, STRANGER)
    appears(world, other)
    sweep_for(world, 120)
    world.clock.forward(120)
    world.fleet.refuses_removal = reason(ReasonCode.PERMISSION, "no", START)
    assert dict(steps(sweep(world.ports))) == {STRANGER: Step.REMOVE, other: Step.REMOVE}
    world.fleet.refuses_removal = None
    world.clock.forward(120)
    sweep(world.ports)
    assert world.fleet.orders == {}
    assert [entry.count for entry in told(world)] == [2, 2]


def test_a_sweep_that_dies_anywhere_is_done_again_and_whole(new_world: Callable[[], World]) -> None:
    def scene(world: World) -> tuple[JobId, JobId]:
        done, job = ended(world), world.running()
        appears(world, STRANGER)
        world.clock.forward(120)
        sweep(world.ports)
        appears(world, world.run(done))
        world.fleet.orders.pop(world.run(job))
        world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.ABSENT)
        world.clock.forward(120)
        world.faults.count = 0
        return done, job

    calm = new_world()
    scene(calm)
    sweep(calm.ports)
    assert calm.faults.count > 10
    for at in range(1, calm.faults.count + 1):
        world = new_world()
        _, job = scene(world)
        world.faults.at = at
        with suppress(Crash):
            sweep(world.ports)
        world.clock.forward(120)
        sweep(world.ports)
        world.settle(60)
        assert world.fleet.orders == {}
        assert world.job(job).state is JobState.FAILED
        assert len([entry for entry in told(world) if "should not be" in entry.message]) == 2


def test_released_attempts_of_many_jobs_are_asked_for_in_few_questions(world: World) -> None:
    job = ended(world)
    for number in range(1200):
        appears(world, RunKey(JobId(f"job-{number:04}"), 1), installation=None)
    appears(world, world.run(job))
    world.clock.forward(timedelta(hours=1).total_seconds())
    assert steps(sweep(world.ports)) == [(world.run(job), Step.REMOVE)]
