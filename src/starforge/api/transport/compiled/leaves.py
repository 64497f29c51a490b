"""How a scalar or an enum is shown: what `coerce_output_value` of its type gives, by a shorter way for usual values."""

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any

from graphql import GraphQLBoolean, GraphQLID, GraphQLInt, GraphQLLeafType, GraphQLString
from graphql.pyutils import Undefined, is_awaitable

Complete = Callable[[Any], Any]

_KEPT_TIMES = 32_768
_INT = range(-(2**31), 2**31)


class Unplain(Exception):
    """This value is one for graphql-core."""


def leaf(kind: GraphQLLeafType) -> Complete:
    """What completes a value that is not null; raises for anything that `kind` can't show."""
    coerce = _checked(kind)
    if kind is GraphQLString or kind is GraphQLID:
        return lambda value: value if type(value) is str else coerce(value)
    if kind is GraphQLBoolean:
        return lambda value: value if type(value) is bool else coerce(value)
    if kind is GraphQLInt:
        return lambda value: value if type(value) is int and value in _INT else coerce(value)
    members = getattr(kind, "wrapped_cls", None)
    return _members(members, coerce) if isinstance(members, type) and issubclass(members, Enum) else _times(coerce)


def _checked(kind: GraphQLLeafType) -> Complete:
    def coerce(value: Any) -> Any:
        if isinstance(value, Exception) or is_awaitable(value):
            raise Unplain
        shown = kind.coerce_output_value(value)
        if shown is None or shown is Undefined:
            raise Unplain
        return shown

    return coerce


def _members(members: type[Enum], coerce: Complete) -> Complete:
    names: dict[Any, Any] = {}

    def complete(value: Any) -> Any:
        if type(value) is not members:
            return coerce(value)
        name = names.get(value)
        if name is None:
            name = names[value] = coerce(value)
        return name

    return complete


def _times(coerce: Complete) -> Complete:
    remembered = lru_cache(_KEPT_TIMES)(coerce)
    return lambda value: remembered(value) if type(value) is datetime else coerce(value)
