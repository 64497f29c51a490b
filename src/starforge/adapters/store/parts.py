"""Lines that are in objects: where they are, and which logs still have rows that are to go there."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, update

from starforge.adapters.store.statements import insert_new
from starforge.adapters.store.tables import LOG_CHUNK, LOG_MOVE, LOG_PART, LOG_SOURCE
from starforge.domain.errors import StaleRevision
from starforge.domain.logs import LogSource
from starforge.domain.names import RunKey
from starforge.domain.queries import LogBlock, LogPart, UnmovedLog


def to_be_moved(connection: Connection, source: LogSource, *, at: datetime) -> None:
    """Note that an archived log has rows."""
    connection.execute(insert_new(connection, LOG_MOVE), _key(source.run, source.key) | {"due_at": at})


def take_unmoved_log(connection: Connection, *, at: datetime, lease_s: float) -> UnmovedLog | None:
    due = select(LOG_MOVE).where(LOG_MOVE.c.due_at <= at).order_by(LOG_MOVE.c.due_at).limit(1)
    row = connection.execute(due.with_for_update(skip_locked=True)).first()
    if row is None:
        return None
    run = RunKey(row.job_id, row.attempt)
    later = at + timedelta(seconds=lease_s)
    connection.execute(update(LOG_MOVE).where(is_of(LOG_MOVE, run, row.source)).values(due_at=later))
    is_source = (LOG_SOURCE.c.job_id == run.job) & (LOG_SOURCE.c.attempt == run.attempt)
    source = connection.execute(select(LOG_SOURCE.c.document).where(is_source, LOG_SOURCE.c.key == row.source))
    return UnmovedLog(source.scalar_one(), _moved(connection, run, row.source))


def keep_log_part(connection: Connection, part: LogPart) -> None:
    is_mine = is_of(LOG_MOVE, part.run, part.source)
    is_to_move = connection.execute(select(LOG_MOVE.c.due_at).where(is_mine).with_for_update()).first()
    moved = _moved(connection, part.run, part.source)
    if not is_to_move or moved != part.first - 1:
        raise StaleRevision(f"Log {part.source} of {part.run} is moved up to line {moved} by now.")
    place = {"first": part.first, "last": part.last, "object": part.key, "blocks": write_blocks(part)}
    connection.execute(LOG_PART.insert(), _key(part.run, part.source) | place)


def drop_moved_lines(connection: Connection, source: LogSource, *, at: datetime, limit: int) -> bool:
    run, moved = source.run, _moved(connection, source.run, source.key)
    is_mine = is_of(LOG_CHUNK, run, source.key)
    in_parts = is_mine & (LOG_CHUNK.c.last <= moved)
    rows = connection.execute(select(LOG_CHUNK.c.first).where(in_parts).order_by(LOG_CHUNK.c.first).limit(limit)).all()
    if rows:
        connection.execute(delete(LOG_CHUNK).where(in_parts, LOG_CHUNK.c.first <= rows[-1].first))
    if len(rows) == limit:
        return True
    has_turns = is_of(LOG_MOVE, run, source.key)
    if moved < source.lines:
        connection.execute(update(LOG_MOVE).where(has_turns).values(due_at=at))
    else:
        connection.execute(delete(LOG_MOVE).where(has_turns))
    return False


def write_blocks(part: LogPart) -> str:
    """A JSON list of `[lines, bytes]` for each block, as they follow on each other without holes."""
    return json.dumps([[block.last - block.first + 1, block.size] for block in part.blocks], separators=(",", ":"))


def read_blocks(key: str, first: int, text: str) -> Iterator[LogBlock]:
    start = 0
    for lines, size in json.loads(text):
        yield LogBlock(key, first, first + lines - 1, start, size)
        first, start = first + lines, start + size


def is_of(table: Table, run: RunKey, source: str) -> ColumnElement[bool]:
    """Whether a row is of that log."""
    return (table.c.job_id == run.job) & (table.c.attempt == run.attempt) & (table.c.source == source)


def _key(run: RunKey, source: str) -> dict[str, object]:
    return {"job_id": run.job, "attempt": run.attempt, "source": source}


def _moved(connection: Connection, run: RunKey, source: str) -> int:
    last = select(func.max(LOG_PART.c.last)).where(is_of(LOG_PART, run, source))
    return connection.execute(last).scalar() or 0
