"""A fleet that nobody observes is told on its jobs, and only then."""

from dataclasses import replace
from datetime import timedelta

from starforge.domain.actions.hear import hear
from starforge.domain.actions.mind_observer import HAND_OVER, mind_observer
from starforge.domain.changes import Aspect
from starforge.domain.health import ObserverHeard
from starforge.domain.job import JobState
from starforge.domain.queries import EventFilter, Window
from starforge.domain.timeline import EventType
from tests.unit.actions.fakes import as_port
from tests.unit.actions.world import World

LEASE_S = 15.0


def observed(world: World, holder: str = "one") -> None:
    assert world.sql.renew_observer("home", holder=holder, at=world.clock(), lease_s=LEASE_S)
    world.sql.note_heard("home", holder=holder, heard=ObserverHeard(world.clock(), 0.1))


def told(world: World) -> list[str]:
    page = world.sql.entry_page(EventFilter(fleets=("home",)), Window(100))
    return [entry.message for _, entry in page.rows if entry.type is EventType.FLEET_CHANGED]


def test_a_job_is_live_as_long_as_somebody_observes(world: World) -> None:
    job = world.running()
    observed(world)
    world.clock.forward(LEASE_S + HAND_OVER.total_seconds() - 0.1)
    mind_observer(world.ports)
    assert world.job(job).attempt.stale_since is None
    assert told(world) == []


def test_when_the_observer_is_dead_its_jobs_are_stale_with_why_and_since_when(world: World) -> None:
    job, waiting = world.running(), world.submit()
    observed(world)
    heard_at = world.clock()
    before = len(world.feed())
    world.clock.forward(LEASE_S + HAND_OVER.total_seconds())
    mind_observer(world.ports)
    attempt = world.job(job).attempt
    assert (attempt.stale_since, world.job(job).state) == (heard_at, JobState.RUNNING)
    assert attempt.stale_problem == "Nobody observes fleet home: start `starforge watch`. Its jobs go on, unseen."
    assert world.job(waiting).attempt.stale_since is None
    (pushed,) = [row for row in world.feed()[before:] if row.job == job]
    assert pushed.aspects == {Aspect.OBSERVATION}


def test_any_number_of_workers_say_it_once(world: World) -> None:
    world.running()
    observed(world)
    world.clock.forward(60)
    mind_observer(world.ports)
    before = len(world.feed())
    for _ in range(3):
        world.clock.forward(5)
        mind_observer(world.ports)
    assert len(world.feed()) == before
    assert len(told(world)) == 1


def test_what_is_launched_meanwhile_is_stale_too(world: World) -> None:
    observed(world)
    world.clock.forward(60)
    job = world.pending()
    mind_observer(world.ports)
    assert world.job(job).attempt.stale_since == world.clock()


def test_before_there_ever_was_an_observer_nothing_is_live(world: World) -> None:
    job = world.running()
    mind_observer(world.ports)
    assert world.job(job).attempt.stale_since == world.clock()
    assert told(world) == []


def test_the_next_observer_hears_it_again(world: World) -> None:
    job = world.running()
    observed(world)
    world.clock.forward(60)
    mind_observer(world.ports)
    observed(world, "two")
    hear(world.ports, None, tell=False)
    mind_observer(world.ports)
    assert world.job(job).attempt.stale_since is None
    assert told(world)[-1] == "Fleet home can be asked again."


def test_an_observer_that_comes_in_between_is_not_called_absent(world: World) -> None:
    job = world.running()
    observed(world)
    world.clock.forward(60)
    states = [world.sql.health(at=world.clock())]
    observed(world, "two")

    class Late:
        """Tells what was so before the other one came, once."""

        def __getattr__(self, name: str) -> object:
            return getattr(world.store, name)

        def health(self, **asked: object) -> object:
            return states.pop() if states else world.sql.health(at=world.clock())

    mind_observer(replace(world.ports, store=as_port(Late())))
    assert world.job(job).attempt.stale_since is None
    assert told(world) == []


def test_a_margin_for_the_hand_over() -> None:
    assert timedelta() < HAND_OVER < timedelta(seconds=LEASE_S)
