"""Values for arguments: such as their types take, and such as nobody in his right mind would send."""

from typing import Any

from graphql import (
    GraphQLInputType,
    GraphQLNamedType,
    is_enum_type,
    is_input_object_type,
    is_list_type,
    is_non_null_type,
)
from hypothesis import strategies as st

from tests.integration.fuzz.known import Known

HUGE = 10**400
INTS = [0, 1, 2, 3, 5, 20, 100, 101, 500, 1000, -1, -100, 2**31 - 1, -(2**31)]
WRONG_INTS = [2**31, 2**53, 2**63, 2**64, -(2**63) - 1, HUGE, 1.5, 1e308, "1", "NaN", "Infinity", True, [], {}]
TEXTS = [
    "", " ", "a", "driver", "main", "h200", "x" * 5000, "é", "漢字", "\x00", "a\x00b", "\ud800", "\udfffx",
    "\U0001f600",
    "\u202e", "%", "_", "\\", "'; drop table job; --", "$(reboot)", "../../etc/passwd", "{{7*7}}", "\n\r\t\x7f", "null",
    "NaN", "-Infinity", "0", "-1", "9" * 400, "train.py", "python3", "16Gi", "-1Gi", "1e999Gi", "0.0000001",
    "sha256:00",
    "a" * 64, "0" * 64, "sha256:" + "0" * 64, "attempt.x.1", "pod...", "log.job-1.1.", "capsule.", "fleet.", "job-",
    "event-1", "event-99999999999999999999", "capsule.\x00", "job-\x00", "job-\ud800", "attempt.job-\x00.1",
    "attempt.job-1.99999999999", "fleet.\ud800", "SIMULATED_SECONDS",
]  # fmt: skip
CURSORS = [
    "", "=", "!!!", "é", "WzEsInJvdyIsWzFdXQ", "WzEsInJvdyIsW11d", "WzEsImZlZWQiLC0xXQ", "WzEsImZlZWQiLDFlOTlopd",
    "WzEsImZlZWQiLDk5OTk5OTk5OTk5OTk5OTk5OTk5XQ", "WzIsImZlZWQiLDFd", "bnVsbA", "W10", "WzEsInJvdyIsW251bGwsbnVsbF1d",
    "WzEsInJvdyIsWyJhIiwiYiJdXQ", "WzEsInJvdyIsWzEsMiwzLDQsNV1d", "WzEsInJvdyIsW3RydWVdXQ", "WzEsInJvdyIsW1tdXV0",
    "WzEsInJvdyIsWyJcdTAwMDAiLCJcdTAwMDAiXV0", "WzEsInJvdyIsW05hTiwiYSJdXQ", "WzEsInJlc3RhcnQiLG51bGxd", "A" * 5000,
    "WzEsImxpbmUiLFsiYSIsMV1d", "WzEsInJvdyIsWzFlMzA4LCJhIl1d", "WzEsInJvdyIsW0luZmluaXR5LCJhIl1d",
]  # fmt: skip
TIMES = [
    "2026-03-01T09:30:00.000Z", "2026-03-01", "2026-03-01T09:30:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-13-01T00:00:00Z", "", "now", "2026-W01-1T00Z",
    "1970-01-01T00:00:00.123456789Z", "2026-03-01T09:30:00+99:99", "2026-03-01T24:00:00Z",
]  # fmt: skip
WRONG: list[Any] = [None, True, 0, 1.5, -1e300, "", "x", [], [[]], {}, {"a": 1}, [None], {"": None}]


class Values:
    """Of one schema and one gateway. Most are such as a type takes, as else nothing would ever be run."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._texts = st.sampled_from([*TEXTS, *known.texts, *known.ids, *known.cursors]) | st.text(max_size=20)
        self._ids = st.sampled_from([*known.ids, *known.ids, *known.ids, *TEXTS])
        self._cursors = st.sampled_from([*known.cursors, *known.cursors, *CURSORS, *TEXTS])

    def of(self, kind: GraphQLInputType, name: str, depth: int = 0) -> st.SearchStrategy[Any]:
        return st.integers(0, 49).flatmap(
            lambda luck: st.sampled_from(WRONG) if luck == 0 else self._right(kind, name, depth)
        )

    def _right(self, kind: Any, name: str, depth: int) -> st.SearchStrategy[Any]:
        if is_non_null_type(kind):
            return self._right(kind.of_type, name, depth)
        if is_list_type(kind):
            return self._list(kind.of_type, name, depth)
        if is_input_object_type(kind):
            return self._object(kind, depth)
        if is_enum_type(kind):
            return st.sampled_from([*kind.values, *kind.values, "NO_SUCH_VALUE"])
        return self._scalar(kind, name)

    def _list(self, item: Any, name: str, depth: int) -> st.SearchStrategy[Any]:
        few = st.lists(self.of(item, name, depth + 1), max_size=3)
        many = self.of(item, name, depth + 1).map(lambda one: [one] * 1000)
        return st.integers(0, 39).flatmap(lambda luck: many if luck == 0 else few)

    def _object(self, kind: Any, depth: int) -> st.SearchStrategy[Any]:
        required = {name: self.of(field.type, name, depth + 1) for name, field in kind.fields.items()
                    if is_non_null_type(field.type)}  # fmt: skip
        optional = {name: self.of(field.type, name, depth + 1) for name, field in kind.fields.items()
                    if name not in required}  # fmt: skip
        if kind.is_one_of:
            one = st.sampled_from(sorted(optional)).flatmap(lambda name: st.fixed_dictionaries({name: optional[name]}))
            return one | st.fixed_dictionaries({}, optional=optional)
        some = st.sets(st.sampled_from(sorted(optional)), max_size=4) if optional else st.just(set())
        return some.flatmap(lambda chosen: st.fixed_dictionaries(required | {name: optional[name] for name in chosen}))

    def _scalar(self, kind: GraphQLNamedType, name: str) -> st.SearchStrategy[Any]:
        if kind.name == "ID":
            return self._ids
        if kind.name in ("Int", "BigInt"):
            return st.sampled_from([*INTS, *INTS, *INTS, *WRONG_INTS]) | st.integers(-5, 110)
        if kind.name == "DateTime":
            return st.sampled_from(TIMES) | st.datetimes().map(lambda at: at.isoformat() + "Z")
        if kind.name == "Boolean":
            return st.sampled_from([True, False, True, False, "true", 1])
        if kind.name == "String":
            return self._cursors if name in ("after", "before") else self._texts
        return st.sampled_from(WRONG)
