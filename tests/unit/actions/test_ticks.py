"""Ticks of the beat that depend on what may be away: they tell it and leave the work to their next turn."""

from types import SimpleNamespace

import pytest

from starforge.domain.reason import ReasonCode, reason
from starforge.workers import tasks
from starforge.workers.app import TICKS
from tests.unit.actions.fakes import START, as_port
from tests.unit.actions.test_prune import announce, later
from tests.unit.actions.test_sweep import STRANGER, appears
from tests.unit.actions.world import World


def tick(name: str, world: World) -> None:
    _, do = TICKS[f"starforge.tick.{name}"]
    do(as_port(SimpleNamespace(ports=world.ports)))


def test_the_beat_sweeps(world: World) -> None:
    world.running()
    appears(world, STRANGER)
    for _ in range(2):
        world.clock.forward(TICKS["starforge.tick.sweep"][0])
        tick("sweep", world)
    assert STRANGER not in world.fleet.orders


def test_a_fleet_that_is_away_is_told_and_swept_later(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.running()
    appears(world, STRANGER)
    world.clock.forward(600)
    world.fleet.down = "The API server is away."
    tick("sweep", world)
    assert "The API server is away." in caplog.text
    world.fleet.down = None
    world.fleet.refuses_list = reason(ReasonCode.PERMISSION, "StarForge may not list Pods.", START)
    tick("sweep", world)
    assert "StarForge may not list Pods." in caplog.text
    assert STRANGER in world.fleet.orders


def test_the_beat_forgets(world: World, caplog: pytest.LogCaptureFixture) -> None:
    digest = announce(world)
    later(world)
    world.clock.forward(1)
    world.objects.down = True
    tick("prune", world)
    assert "does not answer" in caplog.text
    assert world.sql.upload(digest)
    world.objects.down = False
    tick("prune", world)
    assert world.sql.upload(digest) is None


def test_a_defect_is_not_taken_for_an_outage(world: World) -> None:
    assert tasks.sweep is TICKS["starforge.tick.sweep"][1]
    world.fleet.broken = True
    with pytest.raises(RuntimeError):
        tick("sweep", world)
