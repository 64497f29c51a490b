"""Every test runs on SQLite and on Postgres, each time on a new database with the newest schema."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from starforge.adapters.store import SqlStore, migrate
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
    migrate(new_database(postgres, name="template_of_ours"))
    return "template_of_ours"


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
    return new_database(request.getfixturevalue("postgres"), template=request.getfixturevalue("migrated_database"))


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


def new_database(postgres: str, *, name: str | None = None, template: str = "template0") -> str:
    name = name or f"test_{next(_numbers)}"
    with psycopg.connect(postgres, autocommit=True, connect_timeout=10) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")  # type: ignore[call-overload]  # a name of ours
    return make_url(postgres).set(database=name).render_as_string(hide_password=False)
