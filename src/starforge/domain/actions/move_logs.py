"""Moves the lines of archived logs out of the database, part by part, under readers who notice nothing.

A part is stored, read back and compared, then noted in the database, and only then are its rows dropped. Whoever dies
in between has lost nothing: the next one goes on after the parts that are noted.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta

from starforge.domain.actions.log_rows import row_pages
from starforge.domain.errors import Defect, NotFound, StaleRevision
from starforge.domain.log_parts import PART_BYTES, PART_LINES, pack, unpack
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.ports import ObjectStore, Ports
from starforge.domain.queries import LogPart, UnmovedLog

LEASE_S = 60.0
"""Of one part; one that fails is tried again after it."""
DROPPED_AT_ONCE = 500
"""Rows, each of up to 256 KiB."""
_log = logging.getLogger(__name__)


def move_logs(ports: Ports, *, seconds: float) -> None:
    """Move parts until there are none or `seconds` are over. Raises ObjectStoreUnavailable; all rows stay then."""
    until = ports.now() + timedelta(seconds=seconds)
    while ports.now() < until:
        unmoved = ports.store.take_unmoved_log(at=ports.now(), lease_s=LEASE_S)
        if unmoved is None:
            return
        try:
            _move_part(ports, unmoved)
        except StaleRevision as moved:
            _log.info("a log is being moved by another worker: %s", moved)
        except Defect:
            _log.exception("log %s of %s stays in the database", unmoved.source.key, unmoved.source.run)


def _move_part(ports: Ports, unmoved: UnmovedLog) -> None:
    source = unmoved.source
    if unmoved.moved < source.lines:
        ports.store.keep_log_part(_stored(ports, source, _next_lines(ports, unmoved)))
    while ports.store.drop_moved_lines(source, at=ports.now(), limit=DROPPED_AT_ONCE):
        pass


def _next_lines(ports: Ports, unmoved: UnmovedLog) -> Sequence[LogLine]:
    lines: list[LogLine] = []
    size = 0
    for page in row_pages(ports.store, unmoved.source, after=unmoved.moved):
        lines += page
        size += sum(len(line.text) for line in page)
        if size >= PART_BYTES or len(lines) >= PART_LINES:
            break
    return lines[:PART_LINES]


def _stored(ports: Ports, source: LogSource, lines: Sequence[LogLine]) -> LogPart:
    content, part = pack(source, lines)
    ports.objects.put(part.key, content)
    if not _holds(ports.objects, part, lines):
        raise Defect(f"{part.key} reads back otherwise than it was written.")
    return part


def _holds(objects: ObjectStore, part: LogPart, lines: Sequence[LogLine]) -> bool:
    try:
        return list(unpack(objects.read(part.key), part.blocks)) == list(lines)
    except (NotFound, ValueError):
        return False
