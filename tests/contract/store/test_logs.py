"""Logs: guarded appends, and reads by line number over chunks."""

from dataclasses import replace

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes, LogWrite
from starforge.domain.errors import StaleRevision
from starforge.domain.logs import LineMark, LogGap, LogKind, LogLine, LogSource, LogState
from starforge.domain.names import RunKey
from starforge.domain.queries import LogRange
from tests.contract.store.examples import AT, after, saved


def lines_of(first: int, last: int, text: str = "line") -> tuple[LogLine, ...]:
    return tuple(LogLine(number, f"{text} {number} ä", after(number / 7)) for number in range(first, last + 1))


def append(store: SqlStore, source: LogSource, lines: tuple[LogLine, ...]) -> LogSource:
    source = replace(source, lines=source.lines + len(lines))
    store.commit(Changes(logs=[LogWrite(source, lines)]), at=AT)
    return source


@pytest.fixture
def source(store: SqlStore) -> LogSource:
    return LogSource(saved(store).run, "driver", LogKind.DRIVER)


def read(store: SqlStore, source: LogSource, first: int, last: int) -> tuple[LogLine, ...]:
    return tuple(store.log_lines(LogRange(source.run, source.key, first, last)))


def test_lines_are_read_by_number_across_chunks(store: SqlStore, source: LogSource) -> None:
    every = lines_of(1, 3500)
    for first, last in ((1, 1), (2, 1200), (1201, 1205), (1206, 3500)):
        source = append(store, source, every[first - 1 : last])
    assert read(store, source, 1, 3500) == every
    for first, last in ((1, 1), (1200, 1202), (999, 1001), (2205, 2206), (3500, 9999), (1206, 2205)):
        assert read(store, source, first, last) == every[first - 1 : last]
    assert read(store, source, 3501, 9999) == ()
    assert store.log_sources([source.run]) == {source.run: [source]}


def test_long_lines_marks_and_lines_without_a_time(store: SqlStore, source: LogSource) -> None:
    long = tuple(LogLine(number, "ä" * 32 * 1024, None, (LineMark.CUT,)) for number in range(1, 13))
    odd = (LogLine(13, "", None), LogLine(14, 'a "quoted" \u2028 \x1b[1m \\ line', AT, tuple(LineMark)))
    source = append(store, source, (*long, *odd))
    assert read(store, source, 1, 99) == (*long, *odd)
    assert read(store, source, 4, 5) == long[3:5]


@pytest.mark.parametrize("first", [2, 4])
def test_lines_that_do_not_follow_those_that_are_stored_are_refused(
    store: SqlStore, source: LogSource, first: int
) -> None:
    source = append(store, source, lines_of(1, 2))
    lines = lines_of(first, 5)
    with pytest.raises(StaleRevision, match="has 2 lines"):
        store.commit(Changes(logs=[LogWrite(replace(source, lines=5), lines)]), at=AT)
    assert read(store, source, 1, 9) == lines_of(1, 2)


def test_a_source_that_grew_meanwhile_is_not_overwritten(store: SqlStore, source: LogSource) -> None:
    append(store, source, lines_of(1, 2))
    with pytest.raises(StaleRevision):
        append(store, replace(source, state=LogState.CLOSED), ())


def test_lines_stay_readable_when_they_are_in_the_object_store_too(store: SqlStore, source: LogSource) -> None:
    source = append(store, source, lines_of(1, 2))
    closed = replace(source, state=LogState.CLOSED, sha256="s", closed_at=AT, gaps=(LogGap(1, "Lost.", None),))
    archived = replace(closed, object_key="logs/x")
    for step in (closed, archived):
        store.commit(Changes(logs=[LogWrite(step)]), at=AT)
    assert read(store, source, 1, 2) == lines_of(1, 2)
    assert store.log_sources([source.run]) == {source.run: [archived]}


def test_a_closed_source_is_not_opened_again(store: SqlStore, source: LogSource) -> None:
    append(store, replace(source, state=LogState.TRUNCATED), lines_of(1, 2))
    with pytest.raises(StaleRevision, match="closed"):
        append(store, replace(source, lines=2), lines_of(3, 3))
    assert read(store, source, 1, 9) == lines_of(1, 2)


def test_a_log_may_be_interrupted_and_go_on_until_it_is_closed(store: SqlStore, source: LogSource) -> None:
    interrupted = replace(source, state=LogState.INTERRUPTED, problem="the node does not answer")
    assert append(store, interrupted, lines_of(1, 2)).lines == 2
    again = append(store, replace(source, lines=2), lines_of(3, 3))
    assert store.log_sources([source.run]) == {source.run: [again]}
    store.commit(Changes(logs=[LogWrite(replace(again, state=LogState.CLOSED))]), at=AT)
    with pytest.raises(StaleRevision, match="closed"):
        store.commit(Changes(logs=[LogWrite(replace(interrupted, lines=3))]), at=AT)


def test_sources_of_several_runs(store: SqlStore, source: LogSource) -> None:
    append(store, source, ())
    second = append(store, replace(source, run=RunKey(source.run.job, 2)), ())
    runs = [source.run, second.run, RunKey(source.run.job, 3)]
    assert store.log_sources(runs) == {source.run: [source], second.run: [second]}
    assert store.log_sources([]) == {}
