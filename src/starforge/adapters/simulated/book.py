"""What every process of one installation knows of the simulated fleet: its runs, in a small SQLite file.

The time is read while the file's write lock is held, so that no process decides at an earlier time than another one
has already shown.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from starforge.adapters.simulated.record import Record
from starforge.adapters.simulated.scheduler import place
from starforge.adapters.simulated.timeline import timeline
from starforge.adapters.simulated.world import World
from starforge.domain.errors import FleetUnavailable
from starforge.domain.names import RunKey

_LOCK_S = 10.0
_KEPT = timedelta(days=1)  # a run that is gone is remembered, so that it is not started again
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    job TEXT NOT NULL, attempt INTEGER NOT NULL, gone_at REAL, record TEXT NOT NULL, PRIMARY KEY (job, attempt)
);
CREATE TABLE IF NOT EXISTS settled (id INTEGER PRIMARY KEY CHECK (id = 1), at REAL NOT NULL);
INSERT OR IGNORE INTO settled VALUES (1, 0);
"""
_PUT = """
INSERT INTO runs VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET gone_at = excluded.gone_at, record = excluded.record
"""
_RECORD = TypeAdapter(Record)


class Page:
    """The book while it is locked, at the time `now`; every run that can have nodes by then has them."""

    def __init__(self, world: World, rows: sqlite3.Connection, clock: Callable[[], datetime]) -> None:
        self._world, self._rows = world, rows
        settled = self._settled_at()
        self.now = max(clock(), settled)
        self._settle(settled)

    def get(self, run: RunKey) -> Record | None:
        found = self._rows.execute("SELECT record FROM runs WHERE job = ? AND attempt = ?", (run.job, run.attempt))
        row = found.fetchone()
        return None if row is None else _parse(row[0])

    def there(self, since: datetime) -> Sequence[Record]:
        """Every run of which something was there at some time after `since`, in the order of launch."""
        query = "SELECT record FROM runs WHERE gone_at IS NULL OR gone_at > ? ORDER BY rowid"
        return [_parse(body) for (body,) in self._rows.execute(query, (since.timestamp(),))]

    def put(self, record: Record) -> None:
        gone = timeline(self._world, record).gone_at
        body = _RECORD.dump_json(record).decode()
        self._rows.execute(_PUT, (record.run.job, record.run.attempt, gone and gone.timestamp(), body))

    def forget_old(self) -> None:
        self._rows.execute("DELETE FROM runs WHERE gone_at < ?", ((self.now - _KEPT).timestamp(),))

    def _settled_at(self) -> datetime:
        (at,) = self._rows.execute("SELECT at FROM settled").fetchone()
        return datetime.fromtimestamp(at, UTC)

    def _settle(self, since: datetime) -> None:
        records = self.there(since)
        if all(record.placement is not None for record in records):
            return
        for record in place(self._world, records, after=since, until=self.now):
            self.put(record)
        self._rows.execute("UPDATE settled SET at = ?", (self.now.timestamp(),))


class Book:
    """The file at `path`, made if it is missing. Raises FleetUnavailable when it can't be read or written."""

    def __init__(self, path: Path, world: World, clock: Callable[[], datetime]) -> None:
        self._path, self._world, self._clock = path, world, clock
        self._made = False

    @contextmanager
    def open(self) -> Iterator[Page]:
        """The book, locked for everybody else; what was put is kept unless the block raises."""
        try:
            with closing(self._connect()) as rows:
                rows.execute("BEGIN IMMEDIATE")
                yield Page(self._world, rows, self._clock)
                rows.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            message = (
                f"The simulated fleet's state in {self._path} can't be used: {error}. Check the disk and try again."
            )
            raise FleetUnavailable(message) from error

    def _connect(self) -> sqlite3.Connection:
        if not self._made:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        rows = sqlite3.connect(self._path, timeout=_LOCK_S, isolation_level=None)
        try:
            rows.execute("PRAGMA synchronous = OFF")
            if not self._made:
                rows.executescript(_TABLES)
                self._made = True
        except sqlite3.Error:
            rows.close()
            raise
        return rows


@lru_cache(maxsize=4096)
def _parse(body: str) -> Record:
    return _RECORD.validate_json(body)
