"""Logs: sources that grow by guarded appends, and their lines in chunks, or where those are that were moved."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    Text,
    and_,
    cast,
    insert,
    null,
    or_,
    select,
    tuple_,
    union_all,
)

from starforge.adapters.store.jobs import run_pairs
from starforge.adapters.store.parts import is_of, read_blocks, to_be_moved
from starforge.adapters.store.statements import upsert
from starforge.adapters.store.tables import LOG_CHUNK, LOG_PART, LOG_SOURCE
from starforge.domain import chunks
from starforge.domain.changes import LogWrite
from starforge.domain.errors import StaleRevision
from starforge.domain.log_parts import PART_LINES
from starforge.domain.logs import LogLine, LogSource, LogState
from starforge.domain.names import RunKey
from starforge.domain.queries import LogRange, StoredLines

_OVER = (LogState.CLOSED, LogState.TRUNCATED)


def write_logs(connection: Connection, writes: Sequence[LogWrite], *, at: datetime) -> Sequence[LogWrite]:
    """Write sources and lines; returns those writes that people will notice: with lines, or a change of state."""
    return [write for write in writes if _write_log(connection, write, at=at)]


def _write_log(connection: Connection, write: LogWrite, *, at: datetime) -> bool:
    source = write.source
    statement = select(LOG_SOURCE.c.lines, LOG_SOURCE.c.state).where(_is_source(source)).with_for_update()
    stored = connection.execute(statement).first()
    _check(write, stored.lines if stored else 0)
    if stored is not None and stored.state in _OVER and not source.is_over:
        raise StaleRevision(f"Log {source.key} of {source.run} is closed by now; nothing is appended to it.")
    key = {"job_id": source.run.job, "attempt": source.run.attempt}
    state = {"key": source.key, "lines": source.lines, "state": source.state.value, "document": source}
    connection.execute(upsert(connection, LOG_SOURCE), key | state)
    if write.lines:
        connection.execute(insert(LOG_CHUNK), [_chunk(source, lines) for lines in chunks.split(write.lines)])
    if source.object_key is not None and source.lines:
        to_be_moved(connection, source, at=at)
    return bool(write.lines) or stored is None or stored.state != source.state.value


def _check(write: LogWrite, stored: int) -> None:
    source, numbers = write.source, [line.number for line in write.lines]
    if source.lines - len(numbers) != stored or numbers != list(range(stored + 1, source.lines + 1)):
        message = f"Log {source.key} of {source.run} has {stored} lines by now; load it and append what is new."
        raise StaleRevision(message)


def _chunk(source: LogSource, lines: Sequence[LogLine]) -> dict[str, object]:
    return {
        "job_id": source.run.job,
        "attempt": source.run.attempt,
        "source": source.key,
        "first": lines[0].number,
        "last": lines[-1].number,
        "body": chunks.write(lines),
    }


def _is_source(source: LogSource) -> ColumnElement[bool]:
    run, columns = source.run, LOG_SOURCE.c
    return (columns.job_id == run.job) & (columns.attempt == run.attempt) & (columns.key == source.key)


def log_sources(connection: Connection, runs: Sequence[RunKey]) -> Mapping[RunKey, Sequence[LogSource]]:
    """Sources of each run by key, so that the driver comes first."""
    statement = select(LOG_SOURCE.c.document).where(
        tuple_(LOG_SOURCE.c.job_id, LOG_SOURCE.c.attempt).in_(run_pairs(runs))
    )
    found: dict[RunKey, list[LogSource]] = defaultdict(list)
    for source in connection.execute(statement.order_by(LOG_SOURCE.c.key)).scalars():
        found[source.run].append(source)
    return dict(found)


def log_lines(connection: Connection, which: LogRange) -> Sequence[LogLine]:
    statement = select(LOG_CHUNK.c.body, LOG_CHUNK.c.first).where(_holds(LOG_CHUNK, which, chunks.CHUNK_LINES))
    rows = connection.execute(statement.order_by(LOG_CHUNK.c.first))
    return _within(which, ((row.first, row.body) for row in rows))


def log_ranges(connection: Connection, asked: Sequence[LogRange]) -> Mapping[LogRange, StoredLines]:
    # One statement, and so one moment: lines that are rows no more are in a part that it sees.
    columns = ("job_id", "attempt", "source", "first", "last")
    rows = select(*(LOG_CHUNK.c[name] for name in columns), LOG_CHUNK.c.body, cast(null(), Text).label("object"))
    parts = select(*(LOG_PART.c[name] for name in columns), LOG_PART.c.blocks, LOG_PART.c.object)
    statement = union_all(
        rows.where(or_(*(_holds(LOG_CHUNK, which, chunks.CHUNK_LINES) for which in asked))),
        parts.where(or_(*(_holds(LOG_PART, which, PART_LINES) for which in asked))),
    )
    found: dict[tuple[str, int, str], list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(statement):
        found[row.job_id, row.attempt, row.source].append(row)
    return {which: _stored(which, found[which.run.job, which.run.attempt, which.source]) for which in asked}


def _stored(which: LogRange, rows: Sequence[Row[Any]]) -> StoredLines:
    touching = sorted(
        (row for row in rows if row.last >= which.first and row.first <= which.last), key=attrgetter("first")
    )
    lines = _within(which, ((row.first, row.body) for row in touching if row.object is None))
    # What has gone from the rows is the beginning: what is left is contiguous to the end of the log.
    before = lines[0].number - 1 if lines else which.last
    blocks = chain.from_iterable(
        read_blocks(row.object, row.first, row.body) for row in touching if row.object is not None
    )
    return StoredLines(lines, [block for block in blocks if block.last >= which.first and block.first <= before])


def _within(which: LogRange, bodies: Iterable[tuple[int, str]]) -> Sequence[LogLine]:
    lines = chain.from_iterable(chunks.read(body, first) for first, body in bodies)
    return [line for line in lines if which.first <= line.number <= which.last]


def _holds(table: Table, which: LogRange, longest: int) -> ColumnElement[bool]:
    # A row that holds line `first` starts at most `longest - 1` lines before it, so the key's index finds it.
    starts = table.c.first.between(which.first - longest + 1, which.last)
    return and_(is_of(table, which.run, which.source), starts, table.c.last >= which.first)
