"""Column types that mean the same in SQLite and Postgres."""

import re
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import JSON, TIMESTAMP, BigInteger, Integer, String, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from starforge.domain.micros import from_micros, to_micros

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")

Big = BigInteger()
# SQLite numbers rows by itself only in a column that is exactly INTEGER.
Serial = BigInteger().with_variant(Integer(), "sqlite")


def storable(text: str) -> str:
    """Text in which U+FFFD stands for NUL and a question mark for half a surrogate pair, which databases can't hold."""
    text = text.replace("\0", "\ufffd") if "\0" in text else text
    return text if text.isascii() else text.encode(errors="replace").decode()


class LongText(TypeDecorator[str]):
    """Text that is only read and written."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


class Words(LongText):
    """Text to find and sort rows by: by code points in both, whatever the locale of the database is."""

    impl = String  # type: ignore[assignment]  # any type of text will do
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(String() if dialect.name == "sqlite" else String(collation="C"))


class Moment(TypeDecorator[datetime]):
    """A time in UTC to the microsecond: microseconds since the epoch in SQLite, timestamptz in Postgres."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(BigInteger() if dialect.name == "sqlite" else TIMESTAMP(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        micros = to_micros(value)
        return micros if dialect.name == "sqlite" else from_micros(micros)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return from_micros(value) if dialect.name == "sqlite" else value.astimezone(UTC)


class Document(TypeDecorator[Any]):
    """A value of the domain as JSON; the engine passes the text through, so that pydantic alone reads and writes it."""

    impl = JSON
    cache_ok = True

    def __init__(self, shape: Any) -> None:
        super().__init__(none_as_null=True)
        self.shape = shape
        self._adapter: TypeAdapter[Any] = TypeAdapter(shape)

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        json = JSON if dialect.name == "sqlite" else JSONB
        return dialect.type_descriptor(json(none_as_null=True))

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else without_nul(self._adapter.dump_json(value).decode())

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else self._adapter.validate_json(value)


def without_nul(json: str) -> str:
    """JSON text in which U+FFFD stands for NUL, which Postgres can't hold."""
    return _NUL.sub(r"\1\\ufffd", json) if "\\u0000" in json else json
