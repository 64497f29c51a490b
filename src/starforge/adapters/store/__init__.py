"""The database: SQLModel tables on SQLite or Postgres, behind the port `Store`."""

from starforge.adapters.store.migrate import migrate
from starforge.adapters.store.store import SqlStore

__all__ = ["SqlStore", "migrate"]
