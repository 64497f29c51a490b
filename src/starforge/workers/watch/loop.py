"""The observer of a fleet: one is active by a lease, the others stand by."""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from starforge.domain.actions.observe import Observer
from starforge.domain.actions.see_nodes import see_nodes
from starforge.domain.actions.take_turns import Turns
from starforge.domain.changes import Watcher
from starforge.domain.errors import StoreUnavailable, Superseded
from starforge.domain.observation import Seen
from starforge.domain.ports import Ports
from starforge.workers.watch.hearing import Hearing
from starforge.workers.watch.pump import Pump

LEASE_S = 15.0
RENEW_S = 5.0
STAND_BY_S = 1.0
AGAIN_MAX_S = 30.0
GOOD_WHILE_S = 60.0
# The port promises a word a second: a watch that is silent for so long hangs.
SILENT_S = 10.0
PAUSE_S, PAUSE_MAX_S = 0.2, 5.0
_log = logging.getLogger(__name__)


def watch(ports: Ports, stop: threading.Event) -> None:
    """Observe the fleet whenever the lease is ours, until `stop` is set."""
    holder, failures = ports.random(), 0
    while not stop.is_set():
        again_s = STAND_BY_S
        if _renew(ports, holder, LEASE_S):
            _log.info("observing fleet %s", ports.fleet.name)
            began = time.monotonic()
            went_well = _Watch(ports, stop, holder).run() or time.monotonic() - began > GOOD_WHILE_S
            failures = 0 if went_well else min(failures + 1, 10)
            again_s = min(STAND_BY_S * 2.0**failures, AGAIN_MAX_S)
            _renew(ports, holder, 0.0)  # whoever stands by need not wait for its end
        stop.wait(again_s)


def _renew(ports: Ports, holder: str, lease_s: float) -> bool:
    try:
        return ports.store.renew_observer(ports.fleet.name, holder=holder, at=ports.now(), lease_s=lease_s)
    except StoreUnavailable as outage:
        _log.warning("the observer can't keep its lease: %s", outage)
        return False


class _Watch:
    """One time of holding the lease."""

    def __init__(
        self, ports: Ports, stop: threading.Event, holder: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ports, self._stop, self._holder, self._clock = ports, stop, holder, clock
        self._observer = Observer(ports, Watcher(ports.fleet.name, holder))
        self._hearing = Hearing(ports, holder)
        self._turns = Turns(ports, self._observer.watcher)
        self._pump = Pump(ports.fleet, self._observer.resume, clock)
        self._renewed = self._renew_tried = clock()

    def run(self) -> bool:
        """Observe until stopped or until the lease is lost; False if it is the fleet's watch that failed or hangs."""
        self._pump.start()
        try:
            while not self._stop.is_set() and self._still_ours():
                if not self._pump.works(SILENT_S):
                    _log.error("the watch of fleet %s says nothing any more", self._ports.fleet.name)
                    return False
                self._take(list(self._pump.batch()))
        except Superseded as lost:
            _log.warning("%s", lost)
        finally:
            self._pump.end()
        return True

    def _still_ours(self) -> bool:
        now = self._clock()
        if now - self._renew_tried >= RENEW_S:
            self._renew_tried = now
            if _renew(self._ports, self._holder, LEASE_S):
                self._renewed = now
        return now - self._renewed < LEASE_S - RENEW_S / 2

    def _take(self, batch: Sequence[Seen]) -> None:
        """Write a batch, however long the database is away: what was read from the fleet is not read again.

        Superseded if somebody else has taken over meanwhile, who reads it again.
        """
        pause = PAUSE_S
        while not self._stop.is_set():
            try:
                see_nodes(self._ports, batch, self._observer.watcher)
                self._observer.observe(batch)
                self._hearing.take(batch)
                self._turns.hear(batch)
                self._turns.take()
                return self._observer.tick()
            except StoreUnavailable as outage:
                _log.warning("the observer waits for the database: %s", outage)
                self._stop.wait(pause)
                pause = min(pause * 2, PAUSE_MAX_S)
