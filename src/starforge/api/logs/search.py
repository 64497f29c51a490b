"""Lines of a log that contain a text or match an expression.

Expressions are RE2's, whose time grows with the length of the line alone, whatever the expression; and a call looks at
no more than LINES_MAX lines or SECONDS_MAX of work, and then says how far it came, so that the next goes on there.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

import re2  # type: ignore[import-untyped]
import strawberry

from starforge.api import ids
from starforge.api.context import Context
from starforge.api.cursors import line_cursor, read_line_cursor
from starforge.api.directives import Cost
from starforge.api.logs.pages import find_source
from starforge.api.logs.types import LogLine
from starforge.api.paging import PageArgs, bad_input
from starforge.api.values import PageInfo
from starforge.domain import logs
from starforge.domain.log_parts import read_log
from starforge.domain.names import RunKey
from starforge.domain.queries import LogRange

LINES_MAX, SECONDS_MAX = 50_000, 0.2
TOGETHER = 1_000
"""Lines that are read at a time."""
QUERY_MAX, MATCHES_MAX, RANGES_MAX = 256, 100, 20
_MEMORY_MAX = 2 * 1024 * 1024


@strawberry.type(description="A part of a text.", directives=[Cost(weight=0)])
class TextRange:
    start: int = strawberry.field(description="First character, in UTF-16 code units from 0 as JavaScript counts.")
    end: int = strawberry.field(description="One after the last character, counted likewise.")


@strawberry.type(description="A line with where it matched.")
class LogMatch:
    line: LogLine = strawberry.field(description="The line.")
    ranges: list[TextRange] = strawberry.field(description="Where in the text; at most 20.")


@strawberry.type(description="A match and its cursor.", directives=[Cost(weight=0)])
class LogMatchEdge:
    cursor: str = strawberry.field(description="Cursor of this match.")
    node: LogMatch = strawberry.field(description="The match.")


@strawberry.type(description="A page of matching lines.")
class LogMatchConnection:
    edges: list[LogMatchEdge] = strawberry.field(description="Matches with their cursors.")
    nodes: list[LogMatch] = strawberry.field(description="The matches alone.")
    page_info: PageInfo = strawberry.field(
        description=(
            "Where the page lies; `hasNextPage` is also true when the search stopped early, so go on after `endCursor`."
        )
    )
    searched_to_line: int = strawberry.field(
        description=(
            "Number of the last line that was looked at; a page may be short or empty because a search stops after a "
            "second's work."
        )
    )


class Pattern(Protocol):
    """A compiled expression."""

    def finditer(self, text: str) -> Iterator[Any]: ...


@dataclass(frozen=True)
class Wanted:
    """What to look for."""

    query: str
    regex: bool
    case_sensitive: bool

    def pattern(self) -> Pattern:
        """A GraphQL error if it is no expression or too long."""
        if not 1 <= len(self.query) <= QUERY_MAX:
            raise bad_input(f"`query` must have 1 to {QUERY_MAX} characters, not {len(self.query)}.")
        options = re2.Options()
        options.literal, options.case_sensitive = not self.regex, self.case_sensitive
        options.max_mem, options.log_errors = _MEMORY_MAX, False
        try:
            pattern: Pattern = re2.compile(self.query, options)
        except UnicodeEncodeError:
            raise bad_input("`query` has half of a surrogate pair, which is no character.") from None
        except re2.error as wrong:
            raise bad_input(f"`query` is no regular expression that RE2 takes: {_why(wrong)}.") from None
        return pattern


def _why(wrong: Exception) -> str:
    told = wrong.args[0] if wrong.args else b""
    return told.decode(errors="replace") if isinstance(told, bytes) else str(told)


@dataclass(frozen=True)
class Found:
    """Lines that matched, each with its ranges in code points, and the last line that was looked at."""

    matches: Sequence[tuple[logs.LogLine, Sequence[tuple[int, int]]]]
    searched_to: int


def search(
    read: Callable[[int, int], Sequence[logs.LogLine]],
    pattern: Pattern,
    *,
    after: int,
    last: int,
    most: int,
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """Look at lines `after + 1` to `last`, which `read(first, last)` gives, until a limit is reached."""
    until, end = clock() + SECONDS_MAX, min(last, after + LINES_MAX)
    matches: list[tuple[logs.LogLine, Sequence[tuple[int, int]]]] = []
    at = after
    while at < end and (at == after or clock() < until):
        lines = read(at + 1, min(at + TOGETHER, end))
        for line in lines:
            if (ranges := _ranges(pattern, line.text)) is not None:
                matches.append((line, ranges))
                if len(matches) == most:
                    return Found(matches, line.number)
        at = min(at + TOGETHER, end)
    return Found(matches, at)


def _ranges(pattern: Pattern, text: str) -> Sequence[tuple[int, int]] | None:
    """Where it matches, without empty places; None if it does not match at all."""
    spans = [match.span() for match in islice(pattern.finditer(text), RANGES_MAX)]
    return [(start, end) for start, end in spans if end > start] if spans else None


def utf16(text: str, spans: Sequence[tuple[int, int]]) -> list[TextRange]:
    """Spans of code points as JavaScript counts."""
    if max(text, default="") <= "\uffff":
        return [TextRange(start=start, end=end) for start, end in spans]
    return [TextRange(start=_units(text[:start]), end=_units(text[:end])) for start, end in spans]


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", errors="replace")) // 2


async def search_page(
    context: Context, run: RunKey, key: str, wanted: Wanted, *, first: int | None, after: str | None
) -> LogMatchConnection:
    """Matches in one log, oldest first; an empty page while the log does not exist."""
    log = ids.log(run, key)
    most, pattern = PageArgs(first, after, None, None).limit(MATCHES_MAX), wanted.pattern()
    start = read_line_cursor(after, log) or 0
    source = await find_source(context, run, key)
    last, ports, services = source.lines if source else 0, context.ports, context.services

    def read(one: int, other: int) -> Sequence[logs.LogLine]:
        return read_log(ports.store, ports.objects, LogRange(run, key, one, other))

    thread = services.objects_thread if source and source.object_key else services.thread
    found = await thread(search, read, pattern, after=start, last=last, most=most)
    return _connection(log, found, start, last)


def _connection(log: str, found: Found, after: int, last: int) -> LogMatchConnection:
    nodes = [LogMatch(line=LogLine.of(line), ranges=utf16(line.text, spans)) for line, spans in found.matches]
    edges = [LogMatchEdge(cursor=line_cursor(log, node.line.number), node=node) for node in nodes]
    info = PageInfo(
        has_next_page=found.searched_to < last,
        has_previous_page=after > 0,
        start_cursor=edges[0].cursor if edges else None,
        # Where to go on, which is behind the last match when the lines after it were looked at too.
        end_cursor=line_cursor(log, found.searched_to) if found.searched_to else None,
    )
    return LogMatchConnection(edges=edges, nodes=nodes, page_info=info, searched_to_line=found.searched_to)
