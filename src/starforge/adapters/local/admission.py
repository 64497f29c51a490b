"""Which runs of this machine may have their GPUs now: in the order in which they came, for each series.

A place is a file named after the run, in one folder for the fleet, locked by the run's supervisor as long as it lives:
when that process ends, in whatever way, the kernel gives the place back.
"""

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from starforge.adapters.local.rundir import RunOrder

FOLDER = ".places"
_LOCK = "lock"


@dataclass(frozen=True)
class Place:
    """`want` is GPUs by series; `since` seconds since the epoch."""

    uid: str
    since: float
    want: dict[str, int]
    granted: bool = False


_PLACE = TypeAdapter(Place)


class Admission:
    """The places of the fleet whose run directories are in `runs`."""

    def __init__(self, runs: Path) -> None:
        self._folder = runs / FOLDER
        self._folder.mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def wait(self, order: RunOrder, pause: Callable[[str], None]) -> Iterator[None]:
        """The block runs with the GPUs that the order wants; until they are free, `pause` is called with the reason."""
        path = self._folder / f"{order.uid}.json"
        with path.open("w+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                self._enter(file, order, pause)
                yield
            finally:
                path.unlink(missing_ok=True)

    def _enter(self, file: IO[bytes], order: RunOrder, pause: Callable[[str], None]) -> None:
        place = Place(order.uid, order.created_at, wanted(order))
        while True:
            with (self._folder / _LOCK).open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                why = lacking(place.want, self._taken_before(place), order.fleet_gpus)
                _write(file, Place(place.uid, place.since, place.want, granted=why is None))
            if why is None:
                return
            pause(why)

    def _taken_before(self, place: Place) -> Mapping[str, int]:
        """GPUs that others have, and those that others waited for earlier."""
        taken: Counter[str] = Counter()
        for path in self._folder.glob("*.json"):
            other = None if path.stem == place.uid else _held(path)
            if other and (other.granted or (other.since, other.uid) < (place.since, place.uid)):
                taken.update(other.want)
        return taken


def wanted(order: RunOrder) -> dict[str, int]:
    """GPUs by series."""
    total: Counter[str] = Counter()
    for machine in order.machines:
        total[machine.series] += machine.gpus
    return dict(total)


def lacking(want: Mapping[str, int], taken: Mapping[str, int], have: Mapping[str, int]) -> str | None:
    """A sentence about the first series that has too few free GPUs, or None."""
    for series, count in want.items():
        total = have.get(series, 0)
        free = max(total - taken.get(series, 0), 0)
        if count > free:
            return f"Waits for {count} GPUs of series {series}: {free} of {total} are free."
    return None


def _write(file: IO[bytes], place: Place) -> None:
    file.seek(0)
    file.truncate()
    file.write(_PLACE.dump_json(place))
    file.flush()
    os.fsync(file.fileno())


def _held(path: Path) -> Place | None:
    """The place if its supervisor lives; the file of a dead one is removed."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read()
            return _PLACE.validate_json(text) if text else None
        path.unlink(missing_ok=True)
        return None
