"""Reads a fleet's watch in a thread of its own, ahead of what is written of it."""

import logging
import threading
import time
from collections.abc import Callable, Iterator

from starforge.domain.errors import StoreUnavailable
from starforge.domain.names import RunKey
from starforge.domain.observation import Seen
from starforge.domain.ports import Fleet, Resume
from starforge.workers.watch.backlog import Backlog, size_of

BATCH_S = 0.1
BATCH_MAX = 1000
BATCH_BYTES = 8 * 1024 * 1024
IDLE_S = 0.5
JOIN_S = 10.0
_log = logging.getLogger(__name__)


class Pump:
    """One watch, from `start` to `end`. `resume` is asked until it answers, however long the database is away."""

    def __init__(
        self, fleet: Fleet, resume: Callable[[RunKey, str], Resume], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fleet, self._ask_resume, self._clock = fleet, resume, clock
        self._seen = Backlog()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)
        self._asking_since: float | None = None

    def start(self) -> None:
        self._asking_since = self._clock()
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(JOIN_S)

    def works(self, silent_s: float) -> bool:
        """Whether it goes on, and the fleet has not kept us waiting for its next word for so long."""
        since = self._asking_since
        return self._thread.is_alive() and (since is None or self._clock() - since < silent_s)

    def batch(self) -> Iterator[Seen]:
        """What there is, waiting a moment for the first and for more."""
        size, wait_until = 0, time.monotonic() + IDLE_S
        for number in range(BATCH_MAX):
            seen = self._seen.take(timeout_s=max(0.0, wait_until - time.monotonic()))
            if seen is None:
                return
            if number == 0:
                wait_until = time.monotonic() + BATCH_S
            yield seen
            size += size_of(seen)
            if size >= BATCH_BYTES:
                return

    def _run(self) -> None:
        try:
            for seen in self._fleet.watch(self._resume, self._end):
                self._asking_since = None
                self._put(seen)
                self._asking_since = self._clock()
        except Exception:  # noqa: BLE001  it is told, and started again
            _log.exception("the watch of fleet %s failed; it is started again", self._fleet.name)

    def _put(self, seen: Seen) -> None:
        while not self._end.is_set() and not self._seen.put(seen, timeout_s=IDLE_S):
            pass  # the writer waits for the database

    def _resume(self, run: RunKey, source: str) -> Resume:
        self._asking_since = None  # it is we who keep the fleet waiting
        try:
            while True:
                try:
                    return self._ask_resume(run, source)
                except StoreUnavailable as outage:
                    _log.warning("a log waits for the database: %s", outage)
                if self._end.wait(IDLE_S):
                    return Resume(None, closed=True)
        finally:
            self._asking_since = self._clock()
