"""The observer of a fleet: one is active by a lease, the others stand by."""

import logging
import queue
import threading
import time
from collections.abc import Iterator

from starforge.domain.actions.hear import hear
from starforge.domain.actions.look_after import look_after
from starforge.domain.actions.observe import Observer
from starforge.domain.errors import StoreUnavailable
from starforge.domain.names import RunKey
from starforge.domain.observation import FleetHeard, RunSeen, Seen
from starforge.domain.ports import Ports

LEASE_S = 15.0
RENEW_S = 5.0
BATCH_S = 0.1
BATCH_MAX = 1000
LOOK_S = 60.0
_QUEUE_MAX = 20_000
_log = logging.getLogger(__name__)


def watch(ports: Ports, stop: threading.Event) -> None:
    """Observe the fleet whenever the lease is ours, until `stop` is set."""
    holder = ports.random()
    while not stop.is_set():
        if _renew(ports, holder):
            _log.info("observing fleet %s", ports.fleet.name)
            _Watch(ports, stop, holder).run()
        stop.wait(1.0)


def _renew(ports: Ports, holder: str) -> bool:
    try:
        return ports.store.renew_observer(ports.fleet.name, holder=holder, at=ports.now(), lease_s=LEASE_S)
    except StoreUnavailable as outage:
        _log.warning("the observer can't keep its lease: %s", outage)
        return False


class _Watch:
    """One time of holding the lease."""

    def __init__(self, ports: Ports, stop: threading.Event, holder: str) -> None:
        self._ports, self._stop, self._holder = ports, stop, holder
        self._end = threading.Event()
        self._seen: queue.Queue[Seen] = queue.Queue(_QUEUE_MAX)
        self._observer = Observer(ports)
        self._problem: str | None = None
        self._mentioned: set[RunKey] = set()
        self._looked = time.monotonic()
        self._heard_before = False
        self._renewed = self._renew_tried = time.monotonic()

    def run(self) -> None:
        """Observe until stopped, until the lease is lost, or until the fleet's watch fails by a defect."""
        pump = threading.Thread(target=self._pump, name="watch", daemon=True)
        pump.start()
        try:
            while not self._stop.is_set() and pump.is_alive() and self._still_ours():
                self._take(list(self._batch()))
                self._look_after()
        finally:
            self._end.set()
            pump.join(10)

    def _pump(self) -> None:
        try:
            for seen in self._ports.fleet.watch(self._observer.resume, self._end):
                self._put(seen)
        except Exception:  # noqa: BLE001  it is told, and started again
            _log.exception("the watch of fleet %s failed; it is started again", self._ports.fleet.name)

    def _put(self, seen: Seen) -> None:
        while not self._end.is_set():
            try:
                return self._seen.put(seen, timeout=0.5)
            except queue.Full:
                continue

    def _still_ours(self) -> bool:
        now = time.monotonic()
        if now - self._renew_tried >= RENEW_S:
            self._renew_tried = now
            if _renew(self._ports, self._holder):
                self._renewed = now
        return now - self._renewed < LEASE_S - RENEW_S / 2

    def _batch(self) -> Iterator[Seen]:
        try:
            yield self._seen.get(timeout=0.5)
        except queue.Empty:
            return
        until = time.monotonic() + BATCH_S
        for _ in range(BATCH_MAX):
            try:
                yield self._seen.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return

    def _take(self, batch: list[Seen]) -> None:
        """Write a batch, however long the database is away: what was read from the fleet is not read again."""
        self._mentioned |= {seen.run for seen in batch if isinstance(seen, RunSeen)}
        pause = 0.2
        while not self._stop.is_set():
            try:
                self._observer.observe(batch)
                self._hear(batch)
                return self._observer.tick()
            except StoreUnavailable as outage:
                _log.warning("the observer waits for the database: %s", outage)
                self._stop.wait(pause)
                pause = min(pause * 2, 5.0)

    def _look_after(self) -> None:
        """Now and then ask about runs that nothing was told of since the last time."""
        if time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        mentioned, self._mentioned = frozenset(self._mentioned), set()
        try:
            self._take(list(look_after(self._ports, mentioned)))
        except StoreUnavailable as outage:
            _log.warning("runs that are silent are not looked after: %s", outage)

    def _hear(self, batch: list[Seen]) -> None:
        heard = [seen for seen in batch if isinstance(seen, FleetHeard)]
        if heard and (not self._heard_before or heard[-1].problem != self._problem):
            problem = heard[-1].problem
            changed = (problem is None) != (self._problem is None)
            hear(self._ports, problem, tell=changed)
            self._problem, self._heard_before = problem, True
