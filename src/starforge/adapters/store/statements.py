"""Statements that SQLAlchemy builds per dialect; kept, as building one costs more than running it."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.dml import ReturningInsert

Insert = sqlite.Insert | postgresql.Insert


def insert(connection: Connection, table: Table) -> Insert:
    """An insert that can say what to do when the row is there."""
    return _insert(connection.dialect.name, table)


def insert_new(connection: Connection, table: Table) -> Insert:
    """An insert that leaves a row that is there as it is."""
    return _insert_new(connection.dialect.name, table)


def added(connection: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Insert a row; False if one with its key is there, which stays as it is."""
    return connection.execute(_insert_told(connection.dialect.name, table), values).first() is not None


def all_added(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> bool:
    """Insert rows in as few statements as they fit in; False if one with the key of any of them was there."""
    if not rows:
        return True
    told = connection.execute(_insert_told(connection.dialect.name, table), list(rows))
    return len(told.all()) == len(rows)


def upsert(connection: Connection, table: Table) -> Insert:
    """An insert that replaces the row of the same primary key."""
    return _upsert(connection.dialect.name, table)


@cache
def _insert(dialect: str, table: Table) -> Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


@cache
def _insert_new(dialect: str, table: Table) -> Insert:
    return _insert(dialect, table).on_conflict_do_nothing()


@cache
def _insert_told(dialect: str, table: Table) -> ReturningInsert[Any]:
    return _insert_new(dialect, table).returning(*table.primary_key)


@cache
def _upsert(dialect: str, table: Table) -> Insert:
    statement = _insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    changed = {name: statement.excluded[name] for name in map(str, table.columns.keys()) if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)
