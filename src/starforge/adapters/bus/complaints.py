"""Failures that nobody waits for: counted all, logged once a minute."""

import logging
import threading
import time
from collections.abc import Callable

_PERIOD_S = 60.0


class Complaints:
    """Counts failures of one kind and logs the first of each minute, with how many there were since the last one."""

    def __init__(self, log: logging.Logger, what: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self._silent_until = float("-inf")
        self._unlogged = 0
        self.count = 0

    def add(self, why: str) -> None:
        with self._lock:
            self.count += 1
            self._unlogged += 1
            if self._clock() < self._silent_until:
                return
            failed, self._unlogged = self._unlogged, 0
            self._silent_until = self._clock() + _PERIOD_S
        self._log.warning("%s failed (%s), %d times since this was last said.", self._what, why, failed)


__all__ = ["Complaints"]
