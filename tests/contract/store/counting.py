"""The SQL that a call sends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from starforge.adapters.store import SqlStore

Sent = list[tuple[str, Any]]


@contextmanager
def sent_by(store: SqlStore) -> Iterator[Sent]:
    """Statements with their parameters, without those that begin a transaction."""
    sent: Sent = []

    def heard(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            sent.append((statement, parameters))

    event.listen(store.database.engine, "before_cursor_execute", heard)
    try:
        yield sent
    finally:
        event.remove(store.database.engine, "before_cursor_execute", heard)
