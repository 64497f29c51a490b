"""What catches a playground when something fails: the sweep, outages, and a process that dies at any point."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from starforge.domain.actions.expire_playgrounds import expire_playgrounds
from starforge.domain.actions.hear import hear
from starforge.domain.actions.perform import LEASE_S
from starforge.domain.actions.stop_playground import stop_playground
from starforge.domain.actions.sweep import Step, sweep
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.names import PlaygroundId, playground_run
from starforge.domain.observation import RunPhase, RunSeen
from starforge.domain.playground import PlaygroundState
from starforge.domain.reason import ReasonCode
from tests.unit.actions.fakes import Crash
from tests.unit.actions.playing import DRAFT, Players
from tests.unit.actions.world import ANN, World

PROBLEM = "The API server does not answer."


def test_what_an_unknown_playground_has_is_a_stray(world: World) -> None:
    players = Players(world)
    id_ = players.ready()
    order = world.fleet.orders[players.get(id_).key]
    run = playground_run(PlaygroundId("play-nowhere"))
    world.fleet.orders[run] = replace(order, run=run)
    for _ in range(3):
        world.clock.forward(120)
        sweep(world.ports)
    assert world.fleet.deletes == [run]
    assert players.get(id_).state is PlaygroundState.READY


def test_what_a_released_playground_has_goes_at_once(world: World) -> None:
    players = Players(world)
    id_ = players.ready()
    order = world.fleet.orders[players.get(id_).key]
    stop_playground(world.ports, id_, ANN)
    players.pass_time(2)
    world.fleet.orders[order.run] = order
    assert [one.step for one in sweep(world.ports)] == [Step.REMOVE]
    assert world.fleet.orders == {}


def test_a_playground_without_a_pod_is_asked_after(world: World) -> None:
    players = Players(world)
    id_ = players.ready()
    run = players.get(id_).key
    world.fleet.orders.clear()
    world.fleet.looks[run] = RunSeen(run, RunPhase.ABSENT, world.clock())
    world.clock.forward(61)
    assert [one.step for one in sweep(world.ports)] == [Step.ASK]
    assert players.get(id_).state is PlaygroundState.FAILED


def test_an_outage_is_shown_and_ends_nothing(world: World) -> None:
    players = Players(world)
    id_ = players.ready()
    hear(world.ports, PROBLEM, tell=True)
    one = players.get(id_)
    assert (one.state, one.stale_problem, one.stale_since) == (PlaygroundState.READY, PROBLEM, world.clock())
    hear(world.ports, None, tell=True)
    assert players.get(id_).stale_since is None


def test_a_start_gets_a_grace_after_an_outage(world: World) -> None:
    players = Players(world)
    id_ = players.starting()
    hear(world.ports, PROBLEM, tell=True)
    players.pass_time(1900)
    assert players.get(id_).state is PlaygroundState.STARTING
    hear(world.ports, None, tell=True)
    players.pass_time(30)
    clocks = {clock.kind: clock.state for clock in players.get(id_).clocks}
    assert clocks[ClockKind.PRE_RUNNING] is ClockState.GRACE
    players.pass_time(60)
    assert players.get(id_).state is PlaygroundState.FAILED


def test_nobody_is_idle_while_all_of_us_are_away_but_a_whole_life_has_its_end(world: World) -> None:
    players = Players(world)
    idle, old = players.ready(), players.ready(replace(DRAFT, ttl_seconds=60))
    players.pass_time(1)
    world.clock.forward(3000)
    expire_playgrounds(world.ports)
    one = players.get(old)
    assert (one.state, one.reason and one.reason.code) == (PlaygroundState.STOPPED, ReasonCode.EXPIRED)
    assert players.get(idle).answers
    players.pass_time(61)
    assert players.get(idle).state is PlaygroundState.STOPPED


def _after_expiry(players: Players, id_: PlaygroundId) -> None:
    one = players.get(id_)
    assert one.state is PlaygroundState.STOPPED
    assert one.released_at
    assert one.logs_archived_at
    assert players.world.fleet.orders == {}


@pytest.mark.parametrize("at", range(1, 40))
def test_nothing_is_left_wherever_everything_dies(new_world: Callable[[], World], at: int) -> None:
    """From the wish to the expiry, all of us die at step `at` once, and others go on after the lease is over."""
    world = new_world()
    players, faults = Players(world), world.faults
    faults.at = at
    with suppress(Crash):
        players.create(key="key")
    id_ = players.create(key="key").playground.id if world.faults.hit is None else _again(players)
    for _ in range(4):
        with suppress(Crash):
            _live(players, id_)
            break
        world.clock.forward(LEASE_S + 1)
    _after_expiry(players, id_)


def _again(players: Players) -> PlaygroundId:
    players.world.faults.at = None
    return players.create(key="key").playground.id


def _live(players: Players, id_: PlaygroundId) -> None:
    players.pass_time(3)
    if players.get(id_).state is PlaygroundState.STARTING:
        players.see(id_, players.pod(id_))
    if not players.get(id_).ended:
        players.say(id_, "one")
        stop_playground(players.world.ports, id_, ANN)
    players.pass_time(LEASE_S + 30)
