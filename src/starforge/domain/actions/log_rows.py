"""All rows of a log, a few at a time."""

from collections.abc import Iterator, Sequence

from starforge.domain.errors import StaleRevision
from starforge.domain.logs import LogLine, LogSource
from starforge.domain.ports import Store
from starforge.domain.queries import LogRange

PAGE, PAGE_BYTES = 5000, 2 << 20


def row_pages(store: Store, source: LogSource, *, after: int = 0) -> Iterator[Sequence[LogLine]]:
    """The lines after line `after` in pages of PAGE lines or about PAGE_BYTES; StaleRevision if some were moved."""
    step = source.lines_in(PAGE_BYTES, PAGE)
    for first in range(after + 1, source.lines + 1, step):
        last = min(first + step - 1, source.lines)
        lines = store.log_lines(LogRange(source.run, source.key, first, last))
        if len(lines) != last - first + 1:
            raise StaleRevision(f"Lines {first} to {last} of log {source.key} of {source.run} are not all rows by now.")
        yield lines
