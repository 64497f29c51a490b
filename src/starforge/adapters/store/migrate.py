"""Brings a database to the newest schema."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from starforge.adapters.store.engine import Database

ADVISORY_LOCK = 0x5F01
MIGRATION_TIMEOUT_S = 600
MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(url: str) -> None:
    """Run the migrations that the database lacks; of several processes that do so at once, all but one wait."""
    database = Database(url)
    try:
        with database.writing() as connection:
            _wait_for_turn(connection)
            command.upgrade(alembic_config(connection), "head")
    finally:
        database.close()


def alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _wait_for_turn(connection: Connection) -> None:
    """SQLite's writer lock is held already; Postgres has a lock of ours, released at the end of the transaction."""
    if connection.dialect.name == "postgresql":
        for limit in ("statement_timeout", "lock_timeout"):
            connection.execute(text(f"SET LOCAL {limit} = '{MIGRATION_TIMEOUT_S}s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
