"""Connections to SQLite and Postgres, and the two kinds of transaction: those that read and those that write."""

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url

from starforge.adapters.store.failures import as_unavailable, unavailable

BUSY_TIMEOUT_S = 30
BUSY_AGAIN_S = 0.05
STATEMENT_TIMEOUT_S = 30
LOCK_TIMEOUT_S = 20
CONNECT_TIMEOUT_S = 5
_POOL = {"pool_size": 5, "max_overflow": 15, "pool_timeout": 10}
_WRITES = "starforge_writes"


class Database:
    """An engine, and the transactions on it, which raise StoreUnavailable when the database can't be asked."""

    def __init__(self, url: str) -> None:
        self.url = normal_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _sqlite(self.url) if self.is_sqlite else _postgres(self.url)
        self._writer_engine = self.engine.execution_options(**{_WRITES: True})
        # Threads of one process queue here: SQLite's own waiting is a poll, and not fair.
        self._writer = threading.Lock()
        self._closed = False
        after_fork(self._forget_parent)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with as_unavailable(), self._left_closed(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, committed at the end of the block; on SQLite it holds the writer's lock from the start."""
        with as_unavailable(), self._left_closed(), self._turn(), self._writer_engine.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection: now, or with the transaction that is still under way on it."""
        self._closed = True
        self.engine.pool.dispose()

    @contextmanager
    def _left_closed(self) -> Iterator[None]:
        # A pool keeps what is given back to it after it was closed.
        try:
            yield
        finally:
            if self._closed:
                self.engine.pool.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        if not self._writer.acquire(timeout=BUSY_TIMEOUT_S):
            raise unavailable(f"other threads of this process have been writing to it for {BUSY_TIMEOUT_S} seconds")
        try:
            yield
        finally:
            self._writer.release()

    def _forget_parent(self) -> None:
        self._writer = threading.Lock()
        self.engine.dispose(close=False)


def after_fork(forget: Callable[[], None]) -> None:
    """Call the bound method `forget` in forked children, as connections can't be shared, while its object lives."""
    reference = weakref.WeakMethod(forget)
    os.register_at_fork(after_in_child=lambda: method() if (method := reference()) else None)


def normal_url(url: str) -> URL:
    """`url` with the driver we use, so that plain `postgresql://…` works."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return parsed.set(drivername="sqlite+pysqlite")
    if parsed.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    raise ValueError(f"A database of kind {parsed.drivername!r} is not supported; use sqlite:/// or postgresql://.")


def _as_it_is(text: Any) -> Any:
    return text


def _sqlite(url: URL) -> Engine:
    engine = create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S, "isolation_level": None, "check_same_thread": False},
        json_serializer=_as_it_is,
        json_deserializer=_as_it_is,
        **_POOL,
    )
    event.listen(engine, "connect", _sqlite_session)
    event.listen(engine, "begin", _sqlite_begin)
    return engine


def _sqlite_session(connection: Any, _record: object) -> None:
    _write_ahead(connection, time.monotonic() + BUSY_TIMEOUT_S)
    for pragma in ("synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _write_ahead(connection: Any, until: float) -> None:
    """SQLite does not wait for this by itself: while others do the same to a new file, it is busy at once."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as busy:
            if busy.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(BUSY_AGAIN_S)
        else:
            return


def _sqlite_begin(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITES, False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        # By the driver, as sqlalchemy's way is a tenth of a short read, and this asks for no lock that could be taken.
        connection.connection.cursor().execute("BEGIN")


def _postgres(url: URL) -> Engine:
    settings = {
        "timezone": "UTC",
        "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
        "lock_timeout": f"{LOCK_TIMEOUT_S}s",
        "idle_in_transaction_session_timeout": "60s",
    }
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "tcp_user_timeout": STATEMENT_TIMEOUT_S * 1000,
            "keepalives_idle": 30,
            "options": " ".join(f"-c {name}={value}" for name, value in settings.items()),
        },
        json_serializer=_as_it_is,
        json_deserializer=_as_it_is,
        **_POOL,
    )
