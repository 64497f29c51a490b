"""Archived logs: whose turn it is to be moved, notes of parts, and rows that are dropped only when they are in one."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import delete, func, select

from starforge.adapters.store import SqlStore
from starforge.adapters.store.tables import JOB, LOG_MOVE, LOG_PART
from starforge.domain.changes import Changes, LogWrite
from starforge.domain.errors import StaleRevision
from starforge.domain.log_parts import pack
from starforge.domain.logs import LogKind, LogLine, LogSource, LogState
from starforge.domain.queries import LogRange, StoredLines, UnmovedLog
from tests.contract.store.examples import AT, after, saved
from tests.contract.store.test_logs import append, lines_of

LEASE_S = 60.0


def archived(store: SqlStore, *sizes: int, key: str = "driver", number: int = 1) -> LogSource:
    """A log whose lines came in rows of these sizes."""
    source = LogSource(saved(store, number).run, key, LogKind.DRIVER)
    for size in sizes:
        source = append(store, source, lines_of(source.lines + 1, source.lines + size))
    source = replace(source, state=LogState.CLOSED, object_key="logs/x")
    store.commit(Changes(logs=[LogWrite(source)]), at=AT)
    return source


def take(store: SqlStore, seconds: float = 0) -> UnmovedLog | None:
    return store.take_unmoved_log(at=after(seconds), lease_s=LEASE_S)


def keep(store: SqlStore, source: LogSource, first: int, last: int) -> None:
    _, part = pack(source, lines_of(first, last))
    store.keep_log_part(part)


def stored(store: SqlStore, source: LogSource, first: int, last: int) -> StoredLines:
    which = LogRange(source.run, source.key, first, last)
    return store.log_ranges([which])[which]


def numbers(lines: Sequence[LogLine]) -> list[int]:
    return [line.number for line in lines]


def test_only_archived_logs_with_lines_have_a_turn(store: SqlStore) -> None:
    source = LogSource(saved(store).run, "driver", LogKind.DRIVER)
    append(store, source, lines_of(1, 2))
    empty = replace(source, key="empty", state=LogState.CLOSED, object_key="logs/y")
    store.commit(Changes(logs=[LogWrite(empty)]), at=AT)
    assert take(store, 1) is None


def test_each_log_has_its_turn_and_no_other_before_its_lease_is_over(store: SqlStore) -> None:
    one, two = archived(store, 2), archived(store, 3, number=2)
    first, second = take(store, 1), take(store, 2)
    assert first
    assert second
    assert {first.source.run, second.source.run} == {one.run, two.run}
    assert take(store, 3) is None
    assert take(store, LEASE_S + 1.5) == first == UnmovedLog(first.source, 0)


def test_parts_follow_on_each_other(store: SqlStore) -> None:
    source = archived(store, 10)
    with pytest.raises(StaleRevision, match="moved up to line 0"):
        keep(store, source, 2, 5)
    keep(store, source, 1, 5)
    for first, last in ((1, 5), (1, 10), (7, 10)):
        with pytest.raises(StaleRevision, match="moved up to line 5"):
            keep(store, source, first, last)
    keep(store, source, 6, 10)
    assert take(store, 1) == UnmovedLog(source, 10)


def test_rows_are_dropped_when_all_their_lines_are_in_parts(store: SqlStore) -> None:
    source = archived(store, 2, 2, 2, 4)
    keep(store, source, 1, 5)
    assert store.drop_moved_lines(source, at=AT, limit=1)
    assert numbers(stored(store, source, 1, 10).lines) == list(range(3, 11))
    assert store.drop_moved_lines(source, at=AT, limit=1)
    assert not store.drop_moved_lines(source, at=AT, limit=1)
    assert numbers(stored(store, source, 1, 10).lines) == [5, 6, 7, 8, 9, 10]
    assert take(store) == UnmovedLog(source, 5)
    keep(store, source, 6, 10)
    assert not store.drop_moved_lines(source, at=AT, limit=500)
    assert take(store, 1000) is None
    assert stored(store, source, 1, 10).lines == []


def test_without_a_part_nothing_is_dropped(store: SqlStore) -> None:
    source = archived(store, 3)
    assert not store.drop_moved_lines(source, at=AT, limit=500)
    assert numbers(stored(store, source, 1, 3).lines) == [1, 2, 3]
    assert take(store) == UnmovedLog(source, 0)


def test_a_range_is_the_rows_that_are_left_and_the_blocks_before_them(store: SqlStore) -> None:
    source = archived(store, 2000, 500, 700)
    _, part = pack(source, lines_of(1, 2500))
    store.keep_log_part(part)
    assert stored(store, source, 1, 3200).blocks == []
    while store.drop_moved_lines(source, at=AT, limit=1):
        found = stored(store, source, 900, 3100)
        rows = numbers(found.lines)
        held = {number for block in found.blocks for number in range(block.first, block.last + 1)}
        assert held >= set(range(900, rows[0]))
        assert rows == list(range(rows[0], 3101))
    assert stored(store, source, 900, 1100) == StoredLines([], list(part.blocks[:2]))
    assert stored(store, source, 2001, 2001) == StoredLines([], [part.blocks[2]])
    assert stored(store, source, 2501, 2502) == StoredLines(list(lines_of(2501, 2502)), [])
    assert stored(store, source, 3201, 9999) == StoredLines([], [])


def test_ranges_of_many_logs_are_told_apart(store: SqlStore) -> None:
    one, two = archived(store, 3), archived(store, 3, number=2)
    keep(store, one, 1, 3)
    store.drop_moved_lines(one, at=AT, limit=500)
    asked = [LogRange(source.run, source.key, 1, last) for source in (one, two) for last in (1, 3)]
    found = store.log_ranges(asked)
    assert [(len(found[which].blocks), len(found[which].lines)) for which in asked] == [(1, 0), (1, 0), (0, 1), (0, 3)]


def test_with_its_job_goes_what_is_known_of_parts(store: SqlStore) -> None:
    source = archived(store, 3)
    keep(store, source, 1, 2)
    with store.database.writing() as connection:
        connection.execute(delete(JOB).where(JOB.c.id == source.run.job))
        left = [connection.execute(select(func.count()).select_from(table)).scalar() for table in (LOG_PART, LOG_MOVE)]
    assert left == [0, 0]
