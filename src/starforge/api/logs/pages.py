"""Pages of a log: by cursor, or from a line number on."""

from starforge.api import ids
from starforge.api.context import Context
from starforge.api.cursors import line_cursor, read_line_cursor
from starforge.api.logs.types import LogLine, LogLineConnection, LogLineEdge, LogSource
from starforge.api.paging import PageArgs, bad_input
from starforge.api.values import PageInfo
from starforge.domain import logs
from starforge.domain.names import RunKey
from starforge.domain.queries import LogRange

LINES_MAX = 1000


async def log_page(
    context: Context, run: RunKey, key: str, page: PageArgs, from_line: int | None, *, plain: bool
) -> LogLineConnection:
    """Lines of one log; an empty page while the log does not exist."""
    log = ids.log(run, key)
    limit = page.limit(LINES_MAX)
    after, before = read_line_cursor(page.after, log), read_line_cursor(page.before, log)
    if from_line is not None:
        if page.first is None or after is not None or before is not None or from_line < 1:
            raise bad_input("`fromLine` is 1 or more and goes with `first`, without a cursor.")
        after = from_line - 1
    source = await find_source(context, run, key)
    total = source.lines if source else 0
    first, last = _range(limit, after or 0, total if before is None else min(before - 1, total), page.last is not None)
    lines = list(await context.loaders.log_lines.load(LogRange(run, key, first, last))) if first <= last else []
    return _connection(log, source, lines, plain=plain)


def _range(limit: int, after: int, last: int, backward: bool) -> tuple[int, int]:
    """(first, last) line numbers of a page within what lies after `after` and up to `last`."""
    if backward:
        return max(after + 1, last - limit + 1), last
    return after + 1, min(after + limit, last)


async def find_source(context: Context, run: RunKey, key: str) -> logs.LogSource | None:
    """The source of that key, None while there is none."""
    sources = await context.loaders.log_sources.load(run)
    return next((source for source in sources if source.key == key), None)


async def read_lines(context: Context, run: RunKey, key: str, first: int, last: int) -> list[logs.LogLine]:
    """Lines `first` to `last`, both included."""
    if last < first:
        return []
    return list(await context.services.log_reader.lines(LogRange(run, key, first, last)))


def _connection(log: str, source: logs.LogSource | None, rows: list[logs.LogLine], *, plain: bool) -> LogLineConnection:
    lines = [LogLine.of(row, plain=plain) for row in rows]
    edges = [LogLineEdge(cursor=line_cursor(log, line.number), node=line) for line in lines]
    total = source.lines if source else 0
    info = PageInfo(
        has_next_page=bool(rows) and rows[-1].number < total,
        has_previous_page=bool(rows) and rows[0].number > 1,
        start_cursor=edges[0].cursor if edges else None,
        end_cursor=edges[-1].cursor if edges else None,
    )
    return LogLineConnection(
        edges=edges, nodes=lines, page_info=info, source=LogSource.of(source) if source else None, total_count=total
    )
