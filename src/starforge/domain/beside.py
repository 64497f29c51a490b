"""Calls that are made beside each other, so that one that hangs or fails holds up and hides none of the others."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Name = TypeVar("Name")
Result = TypeVar("Result")
_log = logging.getLogger(__name__)


def beside(calls: Mapping[Name, Callable[[], Result]], *, within_s: float, at_once: int = 8) -> dict[Name, Result]:
    """Results of the calls that ended well within `within_s` seconds; a defect of one is logged."""
    pool = ThreadPoolExecutor(max(1, min(at_once, len(calls))), thread_name_prefix="beside")
    try:
        running = {name: pool.submit(call) for name, call in calls.items()}
        wait(running.values(), timeout=within_s)
        return {name: future.result() for name, future in running.items() if _ended_well(name, future)}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _ended_well(name: object, future: "Future[Result]") -> bool:
    if not future.done():
        return False
    defect = future.exception()
    if defect is not None:
        _log.error("%s failed", name, exc_info=defect)
    return defect is None
