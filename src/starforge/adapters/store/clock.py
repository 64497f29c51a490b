"""The time as the database has it, so that hosts whose clocks disagree agree on what is due and whose lease is over.

It is asked for with each new connection and goes on from there by a clock that nobody sets. SQLite lives on this
machine, so that the machine's own time is the database's.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, event


def _local() -> datetime:
    return datetime.now(UTC)


def _since_boot() -> float:
    """Seconds that go on while the machine sleeps, where it can tell."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class DatabaseClock:
    """`local` is this machine's time, which counts until the database was asked; `seconds` only ever goes forward."""

    def __init__(self, local: Callable[[], datetime] = _local, seconds: Callable[[], float] = _since_boot) -> None:
        self._local, self._seconds = local, seconds
        self._heard: tuple[datetime, float] | None = None

    def __call__(self) -> datetime:
        """The time in UTC."""
        heard = self._heard
        return heard[0] + timedelta(seconds=self._seconds() - heard[1]) if heard else self._local()

    def hear(self, at: datetime) -> None:
        """Take `at` for what time it is."""
        self._heard = at, self._seconds()

    def follow(self, postgres: Engine) -> None:
        """Ask it whenever a connection to it is made."""
        event.listen(postgres, "connect", self._ask)

    def _ask(self, connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            (at,) = cursor.fetchone()
        self.hear(at.astimezone(UTC))
        connection.rollback()
