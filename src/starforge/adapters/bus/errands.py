"""Work that the caller waits for no longer than a moment, done in order by one daemon thread."""

import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

_WAITING_MAX = 16


class Errands:
    """Runs what it is given. At most 16 wait: when the thread hangs, the rest is refused rather than kept."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._pid = 0
        self._waiting: queue.Queue[tuple[Future[None], Callable[[], None]]] = queue.Queue(_WAITING_MAX)

    def run(self, errand: Callable[[], None], *, wait_s: float) -> None:
        """Run `errand` and raise what it raises; TimeoutError if it takes longer than `wait_s` or must be refused."""
        done: Future[None] = Future()
        self._start()
        try:
            self._waiting.put_nowait((done, errand))
        except queue.Full:
            raise TimeoutError("the errands before it hang") from None
        done.result(timeout=wait_s)

    def _start(self) -> None:
        """The thread is started at the first use, and again in a process that was forked."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._waiting = queue.Queue(_WAITING_MAX)
                threading.Thread(target=_work, args=(self._waiting,), name=self._name, daemon=True).start()


def _work(waiting: "queue.Queue[tuple[Future[None], Callable[[], None]]]") -> None:
    while True:
        done, errand = waiting.get()
        try:
            errand()
        except Exception as error:  # noqa: BLE001 - it is raised where the errand came from
            done.set_exception(error)
        else:
            done.set_result(None)


__all__ = ["Errands"]
