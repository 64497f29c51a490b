"""Work that shows a progress bar once it takes longer than a person likes to wait without one."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

SHOWN_AFTER_S = 2.0
_FRAME_S = 0.1
Result = TypeVar("Result")


class Meter:
    """Counts bytes as they are done, from any thread."""

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.done = 0

    def add(self, amount: int) -> None:
        self.done += amount


def patiently(console: Console, what: str, work: Callable[[], Result], meter: Meter | None = None) -> Result:
    """What `work` returns or raises; a bar says `what` goes on, with the meter's bytes if there is one.

    The work runs in a thread of its own, so that Ctrl-C does not wait for it.
    """
    future: Future[Result] = Future()
    finished = threading.Event()
    threading.Thread(target=_run, args=(work, future, finished), daemon=True).start()
    if not finished.wait(SHOWN_AFTER_S) and console.is_terminal:
        _show(console, what, finished, meter)
    return future.result()


def _run(work: Callable[[], Result], future: Future[Result], finished: threading.Event) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
        future.set_exception(error)
    finally:
        finished.set()


def _show(console: Console, what: str, finished: threading.Event, meter: Meter | None) -> None:
    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    if meter and meter.total:
        columns.insert(2, DownloadColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar: TaskID = progress.add_task(what, total=meter.total if meter else None)
        while not finished.wait(_FRAME_S):
            progress.update(bar, completed=meter.done if meter else 0)
