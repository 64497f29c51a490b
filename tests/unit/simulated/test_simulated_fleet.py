"""The simulated fleet as several processes of one installation use it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from starforge.adapters.simulated.fleet import SimulatedFleet
from starforge.adapters.simulated.plan import OUTCOME, Outcome
from starforge.adapters.simulated.world import World
from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.names import RunKey
from starforge.domain.observation import EventSeen, FleetHeard, LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.ports import Resume
from starforge.domain.reason import ReasonCode
from starforge.domain.spec import EnvVar, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze
from tests.unit.simulated.lives import DEFAULTS, SMALL, TWO_POOLS, HandClock, order_of, spec_of

FULL = (PoolDraft("train", "h200", 1, 8),)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def process(tmp_path: Path, clock: HandClock) -> Callable[[], SimulatedFleet]:
    """Makes the fleet as one more process would."""
    state = tmp_path / "state" / "fleet.sqlite"
    return lambda: SimulatedFleet(defaults=DEFAULTS, state=state, clock=clock, world=World(nodes=SMALL), poll_s=0)


class Watched:
    """A watch that is read up to the next time the fleet is heard."""

    def __init__(self, fleet: SimulatedFleet, resume: Callable[[RunKey, str], Resume] | None = None) -> None:
        self._items = fleet.watch(resume or (lambda _run, _source: Resume(None)), threading.Event())
        self._heard = next(self._items)

    def news(self) -> list[Seen]:
        """Everything of one look at the fleet."""
        found = [self._heard]
        for seen in self._items:
            if isinstance(seen, FleetHeard):
                self._heard = seen
                break
            found.append(seen)
        return found


def driver_lines(news: list[Seen]) -> list[bytes]:
    return [line.data for seen in news if isinstance(seen, LogSeen) and seen.source == "driver" for line in seen.lines]


def phases(news: list[Seen]) -> list[RunPhase]:
    return list(dict.fromkeys(seen.phase for seen in news if isinstance(seen, RunSeen)))


def test_a_launch_in_one_process_is_watched_in_another(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    watched = Watched(process())
    watched.news()
    process().launch(order_of(spec_of(Outcome.SUCCEED)))
    clock.forward(3600)
    watched.news()
    news = watched.news()
    assert phases(news) == [RunPhase.WAITING, RunPhase.RUNNING, RunPhase.SUCCEEDED]
    assert {"Scheduled", "Pulling", "Pulled", "Started"} == {
        seen.reason for seen in news if isinstance(seen, EventSeen)
    }


def test_nothing_new_is_nothing_told(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    process().launch(order_of(spec_of(Outcome.SUCCEED)))
    clock.forward(3600)
    watched = Watched(process())
    assert len(watched.news()) > 1
    assert [type(seen) for seen in watched.news()] == [FleetHeard]


def test_a_watch_after_a_restart_goes_on_at_the_cursor(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    process().launch(order_of(spec_of(Outcome.SUCCEED)))
    clock.forward(60)
    first = Watched(process()).news()
    cursors = {seen.source: Resume(seen.cursor) for seen in first if isinstance(seen, LogSeen)}
    clock.forward(3600)
    second = Watched(process(), lambda _run, source: cursors[source]).news()
    whole = driver_lines(Watched(process()).news())
    assert 0 < len(driver_lines(first)) < len(whole)
    assert driver_lines(first) + driver_lines(second) == whole


def test_a_stream_that_was_closed_stays_closed(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    process().launch(order_of(spec_of(Outcome.SUCCEED)))
    clock.forward(3600)
    news = Watched(process(), lambda _run, _source: Resume("7", closed=True)).news()
    assert not any(isinstance(seen, LogSeen) for seen in news)


def test_a_stop_cuts_the_streams_that_are_followed(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    order = order_of(spec_of(Outcome.FOREVER))
    process().launch(order)
    watched = Watched(process())
    clock.forward(60)
    before = watched.news() + watched.news()
    process().stop(order.run, grace_s=5)
    clock.forward(3600)
    after = watched.news() + watched.news()
    assert phases(after)[-1] is RunPhase.STOPPED
    assert driver_lines(before) + driver_lines(after) == driver_lines(Watched(process()).news())
    assert [seen.closed for seen in after if isinstance(seen, LogSeen) and seen.source == "driver"][-1]


def test_who_waits_gets_the_nodes_of_who_is_gone(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    fleet = process()
    first, second = (order_of(spec_of(Outcome.FOREVER, pools=FULL), number=number) for number in (1, 2))
    fleet.launch(first)
    clock.forward(60)
    fleet.launch(second)
    clock.forward(60)
    assert fleet.look(second.run).phase is RunPhase.WAITING
    assert fleet.look(second.run).pods[0].conditions[0].message == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."
    )
    fleet.delete(first.run)
    clock.forward(60)
    assert process().look(second.run).phase is RunPhase.RUNNING


def test_a_run_that_is_gone_is_not_started_again(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    fleet, order = process(), order_of(spec_of(Outcome.SUCCEED))
    identity = fleet.launch(order)
    fleet.delete(order.run)
    clock.forward(3600)
    assert fleet.launch(order) == identity
    assert fleet.look(order.run).phase is RunPhase.ABSENT


def test_many_processes_launch_at_once(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda n: process().launch(order_of(spec_of(), number=n % 4)).name, range(32)))
    assert len(set(names)) == 4
    clock.forward(1)
    assert len({seen.run for seen in Watched(process()).news() if isinstance(seen, RunSeen)}) == 4


def test_a_wish_that_can_not_be_followed_is_refused(process: Callable[[], SimulatedFleet]) -> None:
    draft = SpecDraft("digits", ("true",), TWO_POOLS, env=(EnvVar(OUTCOME, "MAYBE"),))
    with pytest.raises(FleetRefused, match="MAYBE") as refused:
        process().launch(order_of(freeze(draft, DEFAULTS)))
    assert refused.value.reason.code is ReasonCode.INVALID_SPEC


def test_a_broken_state_is_an_outage_that_ends(tmp_path: Path, clock: HandClock) -> None:
    state = tmp_path / "fleet.sqlite"
    state.write_text("this is not a database, as anybody can see from its first words")
    fleet = SimulatedFleet(defaults=DEFAULTS, state=state, clock=clock, poll_s=0)
    with pytest.raises(FleetUnavailable, match=r"fleet\.sqlite can't be used"):
        fleet.look(order_of(spec_of()).run)
    items = fleet.watch(lambda _run, _source: Resume(None), threading.Event())
    heard = next(items)
    assert isinstance(heard, FleetHeard)
    assert "Check the disk" in (heard.problem or "")
    state.unlink()
    assert next(items) == FleetHeard(clock.now)


def test_a_clock_that_goes_back_takes_nothing_back(process: Callable[[], SimulatedFleet], clock: HandClock) -> None:
    fleet, order = process(), order_of(spec_of(Outcome.SUCCEED))
    fleet.launch(order)
    clock.forward(3600)
    watched = Watched(fleet)
    told = driver_lines(watched.news())
    clock.now -= timedelta(minutes=30)
    watched.news()
    clock.forward(3600)
    assert driver_lines(watched.news()) == []
    assert told
