"""An outage of the fleet is shown on what is live, and decides nothing."""

from datetime import datetime, timedelta

import pytest

from starforge.api.values import Observation
from starforge.domain.actions import hear as hearing
from starforge.domain.actions.hear import hear
from starforge.domain.job import JobState
from starforge.domain.observation import RunPhase
from starforge.domain.queries import EventFilter, Window
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import EventType
from tests.unit.actions.fakes import START
from tests.unit.actions.world import World, head

PROBLEM = "The API server does not answer."


def told(world: World) -> list[tuple[str, datetime]]:
    page = world.sql.entry_page(EventFilter(fleets=("home",)), Window(100))
    return [(entry.message, entry.first_at) for _, entry in page.rows if entry.type is EventType.FLEET_CHANGED]


def test_what_was_launched_is_stale_until_the_fleet_is_heard(world: World) -> None:
    running, ended = world.running(), world.finishing()
    world.settle(3)
    world.fleet.down = PROBLEM
    waiting = world.submit()
    world.work()
    at = world.clock.now
    hear(world.ports, PROBLEM, tell=True)
    attempt = world.job(running).attempt
    assert (attempt.stale_since, attempt.stale_problem) == (at, PROBLEM)
    assert world.job(running).state is JobState.RUNNING
    assert world.job(ended).attempt.stale_since is None
    assert world.job(waiting).attempt.stale_since is None
    hear(world.ports, None, tell=True)
    attempt = world.job(running).attempt
    assert (attempt.stale_since, attempt.stale_problem) == (None, None)


def test_values_that_were_seen_stay(world: World) -> None:
    job = world.running()
    world.say(job, world.progress(7))
    before = world.job(job).attempt
    hear(world.ports, PROBLEM, tell=False)
    after = world.job(job).attempt
    assert (after.progress, after.observed_at) == (before.progress, START)


def test_hearing_the_same_again_changes_nothing(world: World) -> None:
    job = world.running()
    hear(world.ports, PROBLEM, tell=False)
    before = (world.job(job).revision, len(world.feed()))
    world.clock.forward(5)
    hear(world.ports, PROBLEM, tell=False)
    assert (world.job(job).revision, len(world.feed())) == before


def test_a_token_that_is_refused_is_another_kind_of_problem_of_the_same_outage(world: World) -> None:
    job = world.running()
    hear(world.ports, PROBLEM, tell=False)
    began = world.clock.now
    world.clock.forward(40)
    hear(world.ports, "Unauthorized", tell=False, code=ReasonCode.PERMISSION)
    attempt = world.job(job).attempt
    assert (attempt.stale_since, attempt.stale_problem, attempt.stale_code) == (
        began, "Unauthorized", ReasonCode.PERMISSION,
    )  # fmt: skip
    problem = Observation.of(attempt).problem
    assert problem is not None
    assert (problem.code, problem.message) == (ReasonCode.PERMISSION, "Unauthorized")
    hear(world.ports, None, tell=False)
    assert Observation.of(world.job(job).attempt).problem is None


def test_it_is_one_event_of_the_fleet(world: World) -> None:
    hear(world.ports, PROBLEM, tell=True)
    hear(world.ports, None, tell=True)
    page = world.sql.entry_page(EventFilter(fleets=("home",)), Window(10))
    assert [(entry.type, entry.run) for _, entry in page.rows] == [(EventType.FLEET_CHANGED, None)] * 2


def test_every_page_of_jobs_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "_PAGE", 2)
    jobs = [world.pending() for _ in range(5)]
    hear(world.ports, PROBLEM, tell=False)
    assert [world.job(job).attempt.stale_problem for job in jobs] == [PROBLEM] * 5


def test_a_job_that_ends_in_the_middle_is_left_alone(world: World) -> None:
    job = world.running()
    world.say(job, world.exit(job, 0))

    def ends() -> None:
        world.see(job, RunPhase.SUCCEEDED, head())
        world.work()

    world.store.interfere = [ends]
    hear(world.ports, PROBLEM, tell=False)
    assert world.job(job).state is JobState.SUCCEEDED
    assert world.job(job).attempt.stale_since is None


def test_an_outage_is_told_once_however_often_it_is_noted(world: World) -> None:
    job = world.running()
    since = world.clock()
    for _ in range(3):
        world.clock.forward(5)
        hear(world.ports, PROBLEM, tell=True, since=since)
    assert world.job(job).attempt.stale_since == since
    assert told(world) == [(f"Fleet home can't be asked: {PROBLEM}", since)]


def test_what_was_stale_is_told_to_be_heard_again(world: World) -> None:
    hear(world.ports, None, tell=False)
    world.running()
    hear(world.ports, PROBLEM, tell=False)
    hear(world.ports, None, tell=False)
    assert [message for message, _ in told(world)] == ["Fleet home can be asked again."]


def test_what_was_launched_after_the_outage_began_is_stale_since_then(world: World) -> None:
    since = world.clock()
    world.clock.forward(5)
    job = world.running()
    hear(world.ports, PROBLEM, tell=False, since=since)
    assert world.job(job).attempt.stale_since == since + timedelta(seconds=5)


def test_it_stops_when_it_is_not_so_any_more(world: World) -> None:
    job = world.running()
    hear(world.ports, PROBLEM, tell=False, still=lambda: False)
    assert world.job(job).attempt.stale_since is None
