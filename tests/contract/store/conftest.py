"""Every test runs on SQLite and on Postgres, each time on an empty database with the newest schema."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from sqlalchemy import make_url

from starforge.adapters.store import SqlStore, migrate
from starforge.adapters.store.tables import METADATA
from tests.contract.store.postgres import running_postgres

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "template.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def migrated_database(postgres: str) -> str:
    url = new_database(postgres)
    migrate(url)
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty_url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A database without tables."""
    if backend == "sqlite":
        return f"sqlite:///{tmp_path}/empty.db"
    return new_database(request.getfixturevalue("postgres"))


@pytest.fixture
def url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if backend == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "store.db")
        return f"sqlite:///{tmp_path}/store.db"
    return emptied(request.getfixturevalue("migrated_database"))


@pytest.fixture
def open_store(url: str) -> Iterator[Callable[[], SqlStore]]:
    """Opens stores on one database, each with connections of its own, like processes have them."""
    stores: list[SqlStore] = []

    def opened() -> SqlStore:
        stores.append(SqlStore(url))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], SqlStore]) -> SqlStore:
    return open_store()


def new_database(postgres: str) -> str:
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True, connect_timeout=10) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return make_url(postgres).set(database=name).render_as_string(hide_password=False)


def emptied(url: str) -> str:
    """The database as it was when it was new; faster than a new one, and no directory for each test."""
    tables = SQL(", ").join(map(Identifier, METADATA.tables))
    with psycopg.connect(url, connect_timeout=10, options="-c lock_timeout=20s") as connection:
        connection.execute(SQL("TRUNCATE {} RESTART IDENTITY").format(tables))
        connection.execute("INSERT INTO feed_head (id, head, floor) VALUES (1, 0, 0)")
    return url
