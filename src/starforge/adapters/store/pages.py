"""Pages by key: stable while rows come and go, in both directions, rows without a value last either way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter, ge, gt, le, lt
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    UnaryExpression,
    literal,
    select,
    true,
    union_all,
)
from sqlalchemy import tuple_ as tuple_of

from starforge.adapters.store.columns import Moment, Words
from starforge.domain.errors import CursorInvalid
from starforge.domain.micros import from_micros, to_micros
from starforge.domain.queries import Key, Page, Window

_Condition = ColumnElement[bool]
Result = TypeVar("Result")
TOGETHER_MAX = 200
"""Lists that one statement reads from, each in two parts at most; SQLite takes 500 parts."""
_GROUP = "group_of_rows"


@dataclass(frozen=True)
class Order:
    """Rows by `value`, if there is one, then by the unique `tie`; both the same way."""

    tie: Column[Any]
    value: Column[Any] | None = None
    descending: bool = False

    @property
    def columns(self) -> tuple[Column[Any], ...]:
        return (self.tie,) if self.value is None else (self.value, self.tie)

    @cached_property
    def _values(self) -> Callable[[Row[Any]], Sequence[Any]]:
        first, *more = (column.name for column in self.columns)
        return attrgetter(first, *more) if more else lambda row: (getattr(row, first),)

    def key_of(self, row: Row[Any]) -> Key:
        return tuple([to_micros(value) if isinstance(value, datetime) else value for value in self._values(row)])

    @property
    def nullable(self) -> bool:
        return self.value is not None and bool(self.value.nullable)

    def terms(self, *, forward: bool) -> list[UnaryExpression[Any]]:
        """What to order a part by, to read in this direction."""
        up = forward != self.descending
        return [column.asc() if up else column.desc() for column in self.columns]

    def parts(self, *, forward: bool) -> Sequence["Part"]:
        """Parts in which the rows are read one after the other, as no index serves rows with and without a value."""
        if not self.nullable:
            return [Part(self, None)]
        return [Part(self, lacking=not forward), Part(self, lacking=forward)]


@dataclass(frozen=True)
class Part:
    """Rows with a value or those lacking it; every row, if the order has none that can be lacking."""

    order: Order
    lacking: bool | None

    @property
    def rows(self) -> Sequence[_Condition]:
        value = self.order.value
        if self.lacking is None or value is None:
            return ()
        return (value.is_(None),) if self.lacking else (value.is_not(None),)

    def beyond(self, key: Key, *, forward: bool, at: bool = False) -> _Condition | None:
        """Those that come after `key`, or before it, or `at` it too; None if none can.

        CursorInvalid if it is not a key of this order.
        """
        order = self.order
        *value, tie = _parameters(key, order.columns)
        up = forward != order.descending
        if self.lacking is not None and self.lacking != (key[0] is None):
            return true() if self.lacking == forward else None
        if order.value is None or self.lacking:
            return _past(order.tie, tie, up=up, at=at)
        return _past(tuple_of(order.value, order.tie), tuple_of(value[0], tie), up=up, at=at)


@dataclass(frozen=True)
class Ask:
    """A page that is wanted of `rows`."""

    rows: Select[Any]
    window: Window

    @property
    def forward(self) -> bool:
        return not self.window.backward

    @property
    def near(self) -> Key | None:
        """Where reading starts."""
        return self.window.after if self.forward else self.window.before

    @property
    def far(self) -> Key | None:
        return self.window.before if self.forward else self.window.after

    def statements(self, order: Order) -> Sequence[Select[Any]]:
        """Its rows, part by part in the direction of reading, and one more to see whether there are more."""
        bounds = [(self.near, self.forward), (self.far, not self.forward)]
        some = [self._of(part, bounds) for part in order.parts(forward=self.forward)]
        terms, limit = order.terms(forward=self.forward), self.window.limit + 1
        return [statement.order_by(*terms).limit(limit) for statement in some if statement is not None]

    def there(self, order: Order, bound: Key, *, forward: bool) -> Sequence[Select[Any]]:
        """A row if there is one at the bound or beyond it, part by part."""
        some = [self._of(part, [(bound, forward)], at=True) for part in order.parts(forward=forward)]
        one = literal(1).label("there")
        return [statement.with_only_columns(one).limit(1) for statement in some if statement is not None]

    def _of(self, part: "Part", bounds: Sequence[tuple[Key | None, bool]], *, at: bool = False) -> Select[Any] | None:
        """Its rows of a part that lie beyond every bound; None if there can be none."""
        conditions = [part.beyond(key, forward=way, at=at) for key, way in bounds if key is not None]
        known = [condition for condition in conditions if condition is not None]
        return self.rows.where(*part.rows, *known) if len(known) == len(conditions) else None


def read_page(
    connection: Connection,
    rows: Select[Any],
    order: Order,
    window: Window,
    decode: Callable[[Row[Any]], Result],
) -> Page[Result]:
    """A page of `rows`, in at most two statements."""
    return read_pages(connection, [Ask(rows, window)], order, decode)[0]


def read_pages(
    connection: Connection, asks: Sequence[Ask], order: Order, decode: Callable[[Row[Any]], Result]
) -> Sequence[Page[Result]]:
    """Pages of several lists in one order, in at most two statements for every TOGETHER_MAX of them."""
    pages: list[Page[Result]] = []
    for some in (asks[start : start + TOGETHER_MAX] for start in range(0, len(asks), TOGETHER_MAX)):
        found = _each(connection, [ask.statements(order) for ask in some])
        asked = zip(some, found, _beyond(connection, some, order), strict=True)
        pages += [_page(ask, rows, beyond, order, decode) for ask, rows, beyond in asked]
    return pages


def _page(
    ask: Ask, found: Sequence[Row[Any]], beyond: tuple[bool, bool], order: Order, decode: Callable[[Row[Any]], Result]
) -> Page[Result]:
    limit, forward = ask.window.limit, ask.forward
    kept = found[:limit] if forward else found[:limit][::-1]
    behind, further = beyond[0], beyond[1] or len(found) > limit
    has_next, has_previous = (further, behind) if forward else (behind, further)
    return Page([(order.key_of(row), decode(row)) for row in kept], has_next, has_previous)


def _beyond(connection: Connection, asks: Sequence[Ask], order: Order) -> Sequence[tuple[bool, bool]]:
    """For each page whether there are rows where reading starts or before, and where it must end or further."""
    bounds = [(ask, ask.near, not ask.forward) for ask in asks] + [(ask, ask.far, ask.forward) for ask in asks]
    wanted = [ask.there(order, bound, forward=way) if bound is not None else () for ask, bound, way in bounds]
    there = [bool(rows) for rows in _each(connection, wanted)]
    return list(zip(there[: len(asks)], there[len(asks) :], strict=True))


def _each(connection: Connection, asked: Sequence[Sequence[Select[Any]]]) -> Sequence[Sequence[Row[Any]]]:
    """The rows of each group of statements, one after the other, all asked for by one."""
    statements = [(group, statement) for group, some in enumerate(asked) for statement in some]
    found: list[list[Row[Any]]] = [[] for _ in asked]
    if len(statements) == 1:
        group, statement = statements[0]
        found[group] = list(connection.execute(statement).all())
    elif statements:
        parts = [(group, statement.subquery()) for group, statement in statements]
        for row in connection.execute(
            union_all(*(select(part, literal(group).label(_GROUP)) for group, part in parts))
        ):
            found[row._mapping[_GROUP]].append(row)
    return found


def _past(column: ColumnElement[Any], value: Any, *, up: bool, at: bool) -> _Condition:
    compare = (ge if up else le) if at else (gt if up else lt)
    past: _Condition = compare(column, value)
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
