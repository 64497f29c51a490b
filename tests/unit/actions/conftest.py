"""Worlds on one real database, which is emptied for each: a new engine would compile every statement anew."""

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starforge.adapters.store import SqlStore, migrate
from tests.unit.actions.world import World


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/store.db"
    migrate(url)
    store = SqlStore(url)
    yield store
    store.close()


@pytest.fixture(scope="session")
def empty(store: SqlStore) -> Iterator[sqlite3.Connection]:
    """What the database was like before the first test."""
    copy = sqlite3.connect(":memory:")
    with store.database.engine.connect() as connection:
        _raw(connection).backup(copy)
    yield copy
    copy.close()


@pytest.fixture
def new_world(store: SqlStore, empty: sqlite3.Connection, tmp_path: Path) -> Callable[[], World]:
    """Makes a world; the one before it is over then."""

    def made() -> World:
        with store.database.engine.connect() as connection:
            empty.backup(_raw(connection))
        store.forget_nodes()
        return World(tmp_path, store)

    return made


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    return new_world()


def _raw(connection: object) -> sqlite3.Connection:
    raw = connection.connection.driver_connection  # type: ignore[attr-defined]
    assert isinstance(raw, sqlite3.Connection)
    return raw
