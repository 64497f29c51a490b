"""One time of holding a fleet's lease: what ends it, and that nothing is written once it is somebody else's."""

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Self

import pytest

from starforge.domain.errors import StoreUnavailable
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import FleetHeard, Seen
from starforge.domain.ports import Ports, Resume
from starforge.workers.watch import loop, pump
from starforge.workers.watch.loop import LEASE_S, SILENT_S, _Watch
from tests.unit.actions.fakes import START, as_port
from tests.unit.actions.world import World

RUN = RunKey(JobId("job-x"), 1)


class Scripted:
    """A fleet that tells what it is given, until it is told to `end`, to `fail` or nothing more."""

    name = "home"

    def __init__(self) -> None:
        self.next: queue.Queue[Seen | Exception | None] = queue.Queue()
        self.resumed: list[Resume] = []

    def watch(self, resume: Callable[[RunKey, str], Resume], stop: threading.Event) -> Iterator[Seen]:
        while True:
            try:
                told = self.next.get(timeout=0.05)
            except queue.Empty:
                if stop.is_set():
                    return
                continue
            if isinstance(told, Exception):
                raise told
            if told is None:
                self.resumed.append(resume(RUN, "log"))
            else:
                yield told


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Holding:
    """A watch that runs in a thread; `wrote` waits until a batch was taken in."""

    def __init__(self, world: World) -> None:
        self.world, self.fleet, self.clock, self.stop = world, Scripted(), Clock(), threading.Event()
        self.ports: Ports = replace(world.ports, fleet=as_port(self.fleet))
        assert world.sql.renew_observer("home", holder="us", at=world.clock(), lease_s=LEASE_S)
        self.watch = _Watch(self.ports, self.stop, "us", self.clock)
        self.went_well: bool | None = None
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self.went_well = self.watch.run()

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(10)
        assert not self.thread.is_alive()

    def wrote(self, seen: Seen) -> None:
        """Tell something, and wait until that and a word after it were taken in."""
        self.fleet.next.put(seen)
        heard = threading.Event()
        take = self.watch._hearing.take
        self.watch._hearing.take = lambda batch: (take(batch), heard.set())[0] if batch else None  # type: ignore[method-assign]
        self.fleet.next.put(FleetHeard(self.world.clock(), None))
        assert heard.wait(10)

    def ended(self) -> bool | None:
        self.thread.join(10)
        return self.went_well


def test_what_is_told_is_written_until_it_is_stopped(world: World) -> None:
    job = world.running()
    with Holding(world) as holding:
        holding.wrote(world.lines(job, "one"))
        holding.stop.set()
        assert holding.ended() is True
    assert [line.text for line in world.log(job)] == ["one"]


def test_who_comes_back_after_another_took_over_writes_nothing(world: World) -> None:
    job = world.running()
    with Holding(world) as holding:
        holding.wrote(world.lines(job, "one"))
        world.clock.forward(LEASE_S)  # frozen: it does not know that time has gone by
        assert world.sql.renew_observer("home", holder="them", at=world.clock(), lease_s=LEASE_S)
        lines = world.lines(job, "two", "three")
        world.observer.observe([lines])
        holding.fleet.next.put(replace(lines, cursor="between them", lines=lines.lines[:1]))
        assert holding.ended() is True
    assert [line.text for line in world.log(job)] == ["one", "two", "three"]


def test_a_lease_that_can_not_be_renewed_is_left_before_its_end(world: World) -> None:
    with Holding(world) as holding:
        world.clock.forward(LEASE_S)
        assert world.sql.renew_observer("home", holder="them", at=world.clock(), lease_s=LEASE_S)
        holding.clock.now += LEASE_S - 1
        assert holding.ended() is True


def test_a_watch_that_fails_is_known_to_have_failed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with Holding(world) as holding:
        holding.fleet.next.put(RuntimeError("a defect"))
        assert holding.ended() is False
    assert "a defect" in caplog.text


def test_a_watch_that_hangs_is_given_up(world: World) -> None:
    with Holding(world) as holding:
        holding.wrote(FleetHeard(world.clock(), None))
        holding.clock.now += SILENT_S
        assert holding.ended() is False


def test_the_database_may_keep_a_log_waiting_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump, "IDLE_S", 0.01)
    fleet, clock, outages = Scripted(), Clock(), [StoreUnavailable("away")]
    asked, back = threading.Event(), threading.Event()

    def resume(_run: RunKey, _source: str) -> Resume:
        if outages:
            raise outages.pop()
        asked.set()
        assert back.wait(10)
        return Resume("there")

    it = pump.Pump(as_port(fleet), resume, clock)
    it.start()
    fleet.next.put(None)
    assert asked.wait(10)
    clock.now += 10 * SILENT_S
    assert it.works(SILENT_S)
    back.set()
    heard = FleetHeard(START, None)
    fleet.next.put(heard)
    while not (seen := list(it.batch())):
        assert it.works(SILENT_S)
    assert (seen, fleet.resumed) == ([heard], [Resume("there")])
    it.end()
    assert not it.works(SILENT_S)


def test_a_lease_that_is_left_is_free_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "STAND_BY_S", 0.01)
    fleet, stop = Scripted(), threading.Event()
    ports = replace(world.ports, fleet=as_port(fleet))
    fleet.next.put(FleetHeard(world.clock(), None))
    thread = threading.Thread(target=loop.watch, args=(ports, stop))
    thread.start()
    while "home" not in world.sql.health(at=world.clock()).observers:
        stop.wait(0.01)
    stop.set()
    thread.join(10)
    assert world.sql.renew_observer("home", holder="them", at=world.clock(), lease_s=LEASE_S)
