"""What an observer makes of how well it hears its fleet."""

from datetime import timedelta

import pytest

from starforge.domain.actions.hear import hear
from starforge.domain.errors import StoreUnavailable
from starforge.domain.health import ObserverHeard
from starforge.domain.observation import FleetHeard
from starforge.domain.queries import EventFilter, Window
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import EventType
from starforge.workers.watch.hearing import BLINK, FIRST_WORD, LAPSE, NOTE_EVERY, SAY_EVERY, Hearing
from tests.unit.actions.world import World

DOWN = "The Kubernetes API can't be reached."


class Ear:
    """A hearing with the lease, second by second."""

    def __init__(self, world: World) -> None:
        self.world = world
        assert world.sql.renew_observer("home", holder="us", at=world.clock(), lease_s=1000)
        self.hearing = Hearing(world.ports, "us")

    def hears(self, problem: str | None, *, for_s: float = 1) -> None:
        for _ in range(int(for_s)):
            self.hearing.take([FleetHeard(self.world.clock(), problem)])
            self.world.clock.forward(1)

    @property
    def told(self) -> list[str]:
        page = self.world.sql.entry_page(EventFilter(fleets=("home",)), Window(100))
        return [entry.message for _, entry in page.rows if entry.type is EventType.FLEET_CHANGED]

    @property
    def noted(self) -> ObserverHeard:
        return self.world.sql.health(at=self.world.clock()).observers["home"].heard


def test_an_outage_is_told_with_when_it_began_and_when_it_is_over(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears(None)
    since = world.clock()
    ear.hears(DOWN, for_s=BLINK.total_seconds() + 1)
    attempt = world.job(job).attempt
    assert (attempt.stale_since, attempt.stale_problem) == (since, DOWN)
    ear.hears(None)
    assert world.job(job).attempt.stale_since is None
    assert ear.told == [f"Fleet home can't be asked: {DOWN}", "Fleet home can be asked again."]


def test_a_blink_is_not_told(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears(None)
    revision = world.job(job).revision
    for _ in range(5):
        ear.hears(DOWN, for_s=BLINK.total_seconds())
        ear.hears(None)
    assert (world.job(job).revision, ear.told) == (revision, [])


def test_a_watch_that_begins_may_take_its_time_but_not_for_ever(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears("not told yet", for_s=FIRST_WORD.total_seconds())
    assert world.job(job).attempt.stale_since is None
    ear.hears("not told yet")
    assert world.job(job).attempt.stale_problem == "not told yet"


def test_another_problem_is_the_same_outage(world: World) -> None:
    ear = Ear(world)
    ear.hears(None)
    ear.hears(DOWN, for_s=10)
    ear.hears("It answers 503.", for_s=10)
    assert ear.told == [f"Fleet home can't be asked: {DOWN}"]


def test_the_kind_of_a_problem_is_told_with_it(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears(None)
    for _ in range(6):
        ear.hearing.take([FleetHeard(world.clock(), "Unauthorized", ReasonCode.PERMISSION)])
        world.clock.forward(1)
    attempt = world.job(job).attempt
    assert (attempt.stale_problem, attempt.stale_code) == ("Unauthorized", ReasonCode.PERMISSION)
    assert ear.noted.problem == "Unauthorized"


def test_health_is_told_now_and_then_and_when_it_changes(world: World) -> None:
    ear = Ear(world)
    began = world.clock()
    ear.hears(None)
    assert ear.noted == ObserverHeard(began, 0.0, None)
    ear.hears(None, for_s=NOTE_EVERY.total_seconds() - 1)
    assert ear.noted.at == began
    ear.hears(None)
    assert ear.noted.at == began + NOTE_EVERY
    ear.hears(DOWN)
    assert ear.noted == ObserverHeard(began + NOTE_EVERY, None, DOWN)


def test_how_far_behind_it_is(world: World) -> None:
    ear = Ear(world)
    late = FleetHeard(world.clock() - timedelta(seconds=30), None)
    ear.hearing.take([late, FleetHeard(world.clock(), None)])
    assert ear.noted.lag_s == 30


def test_another_ones_note_is_left_alone(world: World) -> None:
    ear = Ear(world)
    ear.hears(None)
    world.clock.forward(2000)
    assert world.sql.renew_observer("home", holder="them", at=world.clock(), lease_s=1000)
    before = ear.noted
    ear.hears(DOWN)
    assert ear.noted == before


def test_who_comes_back_takes_back_what_was_said_of_its_absence(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears(None)
    world.clock.forward(LAPSE.total_seconds())
    hear(world.ports, "Nobody observes it.", tell=True, since=world.clock())
    ear.hears(None)
    assert world.job(job).attempt.stale_since is None
    assert ear.told[-1] == "Fleet home can be asked again."


def test_what_was_said_too_late_does_not_stay(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears(None)
    hear(world.ports, "Nobody observes it.", tell=False)
    ear.hears(None)
    assert world.job(job).attempt.stale_since
    ear.hears(None, for_s=SAY_EVERY.total_seconds())
    assert world.job(job).attempt.stale_since is None


def test_a_database_that_is_away_loses_no_word(world: World) -> None:
    job, ear = world.running(), Ear(world)
    ear.hears(None)
    world.clock.forward(60)
    hear(world.ports, "Nobody observes it.", tell=False)

    def away() -> None:
        raise StoreUnavailable("away")

    world.store.interfere = [away]
    with pytest.raises(StoreUnavailable):
        ear.hears(None)
    ear.hears(None)
    assert world.job(job).attempt.stale_since is None
