"""The threads that all logs share: one with an event loop, and a few for what blocks."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from starforge.adapters.kube.watch.logs.room import Room

_log = logging.getLogger(__name__)
OPENERS = 8
FILLERS = 2
T = TypeVar("T")


class LogLoop:
    """`start` and `call` are for any thread; `opening` and `filling` are awaited on the loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.room = Room(self.loop)
        self._openers = ThreadPoolExecutor(OPENERS, "log opener")
        self._fillers = ThreadPoolExecutor(FILLERS, "log filler")
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self.thread = threading.Thread(target=self._run, name="log reader", daemon=True)
        self.thread.start()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        if not self.call(self._start, work):
            work.close()

    def call(self, what: Callable[..., object], *args: object) -> bool:
        """Calls it on the loop, soon; False if that has ended."""
        with self._lock:
            if not self._is_closed:
                self.loop.call_soon_threadsafe(what, *args)
            return not self._is_closed

    async def opening(self, what: Callable[[], T], *, undo: Callable[[T], object]) -> T:
        """Something short that blocks, such as making a connection; `undo` if nobody waits for it any more."""
        return await _waited(self._openers.submit(what), undo)

    async def filling(self, what: Callable[[], T], *, undo: Callable[[T], object]) -> T:
        """Something that may block for long, such as asking a dashboard."""
        return await _waited(self._fillers.submit(what), undo)

    def halt(self) -> None:
        """Ends everything that was started; join `thread` to wait for it."""
        self.call(self.loop.stop)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (defect := task.exception()):
            _log.error("a log is not followed any more, by a defect of ours", exc_info=defect)

    def _run(self) -> None:
        self.loop.run_forever()
        with self._lock:
            self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._fillers.shutdown(wait=False, cancel_futures=True)
        self._openers.shutdown(cancel_futures=True)
        self.loop.close()


async def _waited(future: Future[T], undo: Callable[[T], object]) -> T:
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        future.add_done_callback(lambda done: _undone(done, undo))
        raise


def _undone(done: Future[T], undo: Callable[[T], object]) -> None:
    if not done.cancelled() and done.exception() is None:
        undo(done.result())
