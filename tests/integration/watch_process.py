"""`starforge watch` over the simulated fleet of the tests, in which time runs faster.

Run: python -m tests.integration.watch_process <data directory> <redis url> <cache>

FREEZE holds it up before its next commit, THAW lets it go on. (SIGSTOP may hit it in a transaction, and with SQLite
everybody waits for the end of that.)
"""

import logging
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from starforge.cli.serve import on_signal
from starforge.workers.watch.loop import watch
from tests.integration.gateway import Platform
from tests.servers import RedisServer

FREEZE, THAW = signal.SIGUSR1, signal.SIGUSR2


class Freezing:
    """A store whose commits wait while it is frozen."""

    def __init__(self, store: Any) -> None:
        self._store, self._thawed = store, threading.Event()
        self._thawed.set()
        signal.signal(FREEZE, lambda *_: self._thawed.clear())
        signal.signal(THAW, lambda *_: self._thawed.set())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *args: Any, **kwargs: Any) -> Any:
        self._thawed.wait()
        return self._store.commit(*args, **kwargs)


def main(data: str, redis_url: str, cache: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    redis = RedisServer(Path(data), port=urlsplit(redis_url).port or 0)
    parts, stop = Platform(Path(data), redis, Path(cache)).parts(), threading.Event()
    on_signal(stop.set)
    try:
        watch(replace(parts.ports, store=cast("Any", Freezing(parts.ports.store))), stop)
    finally:
        parts.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
