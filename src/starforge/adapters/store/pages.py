"""Pages by key: stable while rows come and go, in both directions, rows without a value last either way."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Column, ColumnElement, Connection, Row, Select, UnaryExpression, and_, literal, or_
from sqlalchemy import tuple_ as tuple_of

from starforge.adapters.store.columns import Moment, Words, from_micros, to_micros
from starforge.domain.errors import CursorInvalid
from starforge.domain.queries import Key, Page, Window

_Condition = ColumnElement[bool]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Order:
    """Rows by `value`, if there is one, then by the unique `tie`; both the same way."""

    tie: Column[Any]
    value: Column[Any] | None = None
    descending: bool = False

    @property
    def columns(self) -> tuple[Column[Any], ...]:
        return (self.tie,) if self.value is None else (self.value, self.tie)

    def key_of(self, row: Row[Any]) -> Key:
        values = (row._mapping[column] for column in self.columns)
        return tuple(to_micros(value) if isinstance(value, datetime) else value for value in values)

    def terms(self, *, forward: bool) -> list[UnaryExpression[Any]]:
        """What to order by, to read in this direction."""
        up = forward != self.descending
        terms = [column.asc() if up else column.desc() for column in self.columns]
        if self.value is not None and self.value.nullable:
            terms[0] = terms[0].nulls_last() if forward else terms[0].nulls_first()
        return terms

    def beyond(self, key: Key, *, forward: bool) -> _Condition:
        """Rows that come after `key`, or before it; CursorInvalid if it is not a key of this order."""
        *value, tie = _parameters(key, self.columns)
        up = forward != self.descending
        if self.value is None:
            return _past(self.tie, tie, up=up)
        if not self.value.nullable:
            return _past(tuple_of(self.value, self.tie), tuple_of(value[0], tie), up=up)
        return self._beyond_nullable(None if key[0] is None else value[0], tie, up=up, forward=forward)

    def _beyond_nullable(self, value: Any, tie: Any, *, up: bool, forward: bool) -> _Condition:
        column, tied = self.value, _past(self.tie, tie, up=up)
        assert column is not None  # noqa: S101
        if value is None:
            without = and_(column.is_(None), tied)
            return without if forward else or_(column.is_not(None), without)
        near = or_(_past(column, value, up=up), and_(column == value, tied))
        return or_(near, column.is_(None)) if forward else near

    def at(self, key: Key) -> _Condition:
        """The row with `key`."""
        parameters = _parameters(key, self.columns)
        pairs = zip(self.columns, key, parameters, strict=True)
        return and_(*(column.is_(None) if part is None else column == value for column, part, value in pairs))


def read_page(
    connection: Connection,
    rows: Select[Any],
    order: Order,
    window: Window,
    decode: Callable[[Row[Any]], Result],
) -> Page[Result]:
    """A page of `rows`, in at most three statements."""
    forward = not window.backward
    near, far = (window.after, window.before) if forward else (window.before, window.after)
    statement = rows.order_by(*order.terms(forward=forward)).limit(window.limit + 1)
    for bound, way in ((near, forward), (far, not forward)):
        if bound is not None:
            statement = statement.where(order.beyond(bound, forward=way))
    found = connection.execute(statement).all()
    kept = found[: window.limit] if forward else found[: window.limit][::-1]
    further = len(found) > window.limit or _any(connection, rows, order, far, forward=forward)
    behind = _any(connection, rows, order, near, forward=not forward)
    has_next, has_previous = (further, behind) if forward else (behind, further)
    return Page([(order.key_of(row), decode(row)) for row in kept], has_next, has_previous)


def _any(connection: Connection, rows: Select[Any], order: Order, bound: Key | None, *, forward: bool) -> bool:
    """Whether there is a row at the bound or beyond it."""
    if bound is None:
        return False
    there = or_(order.at(bound), order.beyond(bound, forward=forward))
    return connection.execute(rows.with_only_columns(literal(1)).where(there).limit(1)).first() is not None


def _past(column: ColumnElement[Any], value: Any, *, up: bool) -> _Condition:
    past: _Condition = column > value if up else column < value
    return past


def _parameters(key: Key, columns: tuple[Column[Any], ...]) -> list[ColumnElement[Any]]:
    if len(key) != len(columns):
        raise _invalid()
    return [_parameter(value, column) for value, column in zip(key, columns, strict=True)]


def _parameter(value: object, column: Column[Any]) -> ColumnElement[Any]:
    if value is None and column.nullable:
        return literal(None)
    if isinstance(column.type, Words):
        if isinstance(value, str):
            return literal(value, column.type)
        raise _invalid()
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise _invalid()
    if not isinstance(column.type, Moment):
        return literal(value, BigInteger())
    try:
        return literal(from_micros(value), column.type)
    except OverflowError as error:
        raise _invalid() from error


def _invalid() -> CursorInvalid:
    return CursorInvalid("The cursor is not one of this list in this order; start again without it.")
