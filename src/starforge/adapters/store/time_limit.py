"""Questions that are given up after a while, for those whose work nobody can foresee."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from starforge.domain.errors import TookTooLong

_STEPS = 10_000
"""Instructions of SQLite's machine between two looks at the clock: well under a millisecond."""
_POSTGRES_GIVEN_UP, _SQLITE_GIVEN_UP = "57014", "SQLITE_INTERRUPT"


@contextmanager
def at_most(connection: Connection, seconds: float, *, about: str) -> Iterator[None]:
    """A block whose statements take no longer than `seconds` in all; TookTooLong, told as `about`, if they would."""
    try:
        with _limited(connection, seconds):
            yield
    except OperationalError as error:
        if not _given_up(error):
            raise
        message = f"{about} took longer than {seconds:g} seconds and was given up; ask for less, or try again."
        raise TookTooLong(message) from error


@contextmanager
def _limited(connection: Connection, seconds: float) -> Iterator[None]:
    if connection.dialect.name != "sqlite":
        connection.execute(text(f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}"))
        yield
        return
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101  it is open
    until = time.monotonic() + seconds
    driver.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)


def _given_up(error: OperationalError) -> bool:
    found = (getattr(error.orig, "sqlstate", None), getattr(error.orig, "sqlite_errorname", None))
    return _POSTGRES_GIVEN_UP in found or _SQLITE_GIVEN_UP in found
