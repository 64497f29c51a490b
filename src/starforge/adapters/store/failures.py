"""What the database's own errors mean to the rest of the program."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from starforge.domain.errors import StoreUnavailable

_DEADLOCK = ("40P01", "40001")


@contextmanager
def as_unavailable() -> Iterator[None]:
    """Raise StoreUnavailable where the database can't be asked; mistakes in what was asked stay what they are."""
    try:
        yield
    except PoolTimeout as error:
        raise unavailable("all connections to it are in use") from error
    except (OperationalError, InterfaceError) as error:
        raise unavailable(_what(error)) from error
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise unavailable("the connection to it was lost") from error


def unavailable(why: str) -> StoreUnavailable:
    return StoreUnavailable(f"The database can't be asked: {why}. Nothing was changed; try again in a few seconds.")


def was_deadlock(error: StoreUnavailable) -> bool:
    """Whether Postgres ended the transaction only because two of them waited for each other."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError) and getattr(cause.orig, "sqlstate", None) in _DEADLOCK


def _what(error: DBAPIError) -> str:
    # The driver's full text may name hosts and users; its kind is enough here, the text is in the cause.
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "sqlite_errorname", None)
    return f"{type(error.orig).__name__}{f' ({state})' if state else ''}"
