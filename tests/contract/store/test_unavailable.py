"""What happens when the database can't be asked."""

from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from starforge.adapters.store import SqlStore, migrate
from starforge.domain.changes import Changes
from starforge.domain.errors import StoreUnavailable
from tests.contract.store.examples import AT, a_job, save, saved

END_OTHERS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def test_a_database_that_is_not_there(tmp_path: Path, backend: str) -> None:
    missing = tmp_path / "missing"
    url = f"sqlite:///{missing}/a.db" if backend == "sqlite" else f"postgresql://me:secret@/db?host={missing}"
    store = SqlStore(url)
    for ask in (store.feed_bounds, lambda: store.commit(Changes(), at=AT), lambda: migrate(url)):
        with pytest.raises(StoreUnavailable, match="try again") as caught:
            ask()
        assert "secret" not in str(caught.value)
        assert caught.value.retryable
    store.close()


@pytest.mark.parametrize("backend", ["postgres"])
def test_a_connection_that_the_server_ended_is_replaced(store: SqlStore, url: str) -> None:
    job = saved(store)
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as other:
        other.execute(END_OTHERS)
    assert store.job(job.id) == job


@pytest.mark.parametrize("backend", ["postgres"])
def test_a_connection_that_ends_within_a_commit_changes_nothing(store: SqlStore, url: str) -> None:
    def lose_it() -> None:
        with store.database.writing() as connection:
            own = connection.scalar(text("SELECT pg_backend_pid()"))
            with psycopg.connect(url, autocommit=True, connect_timeout=10) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [own])
            connection.execute(text("SELECT 1"))

    with pytest.raises(StoreUnavailable):
        lose_it()
    save(store, a_job())
    assert store.feed_bounds() == (0, 1)


def test_a_transaction_that_outlives_the_store_leaves_no_connection(url: str) -> None:
    store = SqlStore(url)
    store.feed_bounds()
    with store.database.reading() as connection:
        store.close()
        assert connection.scalar(text("SELECT 1")) == 1
    assert connection.closed
    assert store.database.engine.pool.checkedin() == 0  # type: ignore[attr-defined]  # of a QueuePool
    store.feed_bounds()
    assert store.database.engine.pool.checkedin() == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("backend", ["sqlite"])
def test_sqlite_is_set_up_for_many_processes(store: SqlStore) -> None:
    with store.database.engine.connect() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 30_000}


def test_other_databases_are_refused() -> None:
    with pytest.raises(ValueError, match="mysql"):
        SqlStore("mysql://localhost/x")
