"""Logs: sources that grow by guarded appends, and their lines in chunks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from sqlalchemy import ColumnElement, Connection, and_, insert, or_, select, tuple_

from starforge.adapters.store import chunks
from starforge.adapters.store.jobs import run_pairs
from starforge.adapters.store.statements import upsert
from starforge.adapters.store.tables import LOG_CHUNK, LOG_SOURCE
from starforge.domain.changes import LogWrite
from starforge.domain.errors import StaleRevision
from starforge.domain.logs import LogLine, LogSource, LogState
from starforge.domain.names import RunKey
from starforge.domain.queries import LogRange

_OVER = (LogState.CLOSED, LogState.TRUNCATED)


def write_logs(connection: Connection, writes: Sequence[LogWrite]) -> Sequence[LogWrite]:
    """Write sources and lines; returns those writes that people will notice: with lines, or a change of state."""
    return [write for write in writes if _write_log(connection, write)]


def _write_log(connection: Connection, write: LogWrite) -> bool:
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


def _is_of(run: RunKey, source: str) -> ColumnElement[bool]:
    columns = LOG_CHUNK.c
    return (columns.job_id == run.job) & (columns.attempt == run.attempt) & (columns.source == source)


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
    statement = select(LOG_CHUNK.c.body, LOG_CHUNK.c.first).where(_chunks_of(which))
    rows = connection.execute(statement.order_by(LOG_CHUNK.c.first))
    return _within(which, ((row.first, row.body) for row in rows))


def log_ranges(connection: Connection, asked: Sequence[LogRange]) -> Mapping[LogRange, Sequence[LogLine]]:
    columns = LOG_CHUNK.c
    statement = select(columns.job_id, columns.attempt, columns.source, columns.first, columns.last, columns.body)
    found: dict[tuple[RunKey, str], list[tuple[int, int, str]]] = defaultdict(list)
    for row in connection.execute(statement.where(or_(*map(_chunks_of, asked))).order_by(columns.first)):
        found[RunKey(row.job_id, row.attempt), row.source].append((row.first, row.last, row.body))
    return {
        which: _within(
            which,
            (
                (first, body)
                for first, last, body in found.get((which.run, which.source), ())
                if last >= which.first and first <= which.last
            ),
        )
        for which in asked
    }


def _within(which: LogRange, bodies: Iterable[tuple[int, str]]) -> Sequence[LogLine]:
    lines = chain.from_iterable(chunks.read(body, first) for first, body in bodies)
    return [line for line in lines if which.first <= line.number <= which.last]


def _chunks_of(which: LogRange) -> ColumnElement[bool]:
    # A chunk that holds line `first` starts at most CHUNK_LINES - 1 lines before it, so the key's index finds it.
    starts = LOG_CHUNK.c.first.between(which.first - chunks.CHUNK_LINES + 1, which.last)
    return and_(_is_of(which.run, which.source), starts, LOG_CHUNK.c.last >= which.first)
