"""What an operation costs with given variables, from what `measure` compiled: fast, and linear in the document."""

from collections.abc import Mapping
from dataclasses import dataclass

from starforge.api.transport.prices import Price
from starforge.api.transport.slicing import Slice


@dataclass(frozen=True, eq=False)
class Selected:
    """The selections of one place; `spread` are those of its fragments, each a fragment's one and only object."""

    fields: tuple["Selection", ...]
    spread: tuple["Selected", ...]


@dataclass(frozen=True, eq=False)
class Selection:
    """One field in one place."""

    name: str
    price: Price
    slices: tuple[Slice, ...]
    below: Selected


_Sized = frozenset[str]
_UNSIZED: _Sized = frozenset()
_Line = tuple[int, int]
"""a and b of a + b n, where n is the number of items of the connection that the selections are of."""


class Evaluation:
    """The cost of selections with the values of variables; each fragment is looked at once per kind of place."""

    def __init__(self, variables: Mapping[str, int | None]) -> None:
        self._variables = variables
        self._known: dict[tuple[Selected, _Sized], _Line] = {}

    def cost(self, selected: Selected) -> int:
        return self._line(selected, _UNSIZED)[0]

    def _line(self, selected: Selected, sized: _Sized) -> _Line:
        key = selected, sized
        if key not in self._known:
            lines = [self._field(field, sized) for field in selected.fields]
            lines += [self._line(below, sized) for below in selected.spread]
            self._known[key] = sum(a for a, _ in lines), sum(b for _, b in lines)
        return self._known[key]

    def _field(self, field: Selection, sized: _Sized) -> _Line:
        price, holders = field.price, field.price.sizing.sized_fields
        items = self._items(field)
        fixed, per_item = self._line(field.below, holders)
        one = price.each + fixed + per_item * items
        if field.name in sized:
            return price.once, one
        return price.once + one * (1 if holders else items), 0

    def _items(self, field: Selection) -> int:
        given = [value for one in field.slices if (value := one.value(self._variables)) is not None]
        return max(given, default=field.price.sizing.assumed)
