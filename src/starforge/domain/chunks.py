"""Log lines as the text of a chunk: a JSON list, each line `[text, microseconds since the epoch | null, mark, …]`."""

import json
from collections.abc import Iterable, Iterator, Sequence

from starforge.domain.logs import LineMark, LogLine
from starforge.domain.micros import from_micros, to_micros

CHUNK_LINES = 1000
CHUNK_BYTES = 256 * 1024


def split(lines: Sequence[LogLine]) -> Iterator[Sequence[LogLine]]:
    """The lines in groups of which each fits into a chunk; a line that is too long for any has one of its own."""
    start, size = 0, 0
    for index, line in enumerate(lines):
        length = len(line.text.encode())
        if index > start and (index - start == CHUNK_LINES or size + length > CHUNK_BYTES):
            yield lines[start:index]
            start, size = index, 0
        size += length
    if start < len(lines):
        yield lines[start:]


def write(lines: Iterable[LogLine]) -> str:
    rows = [[line.text, to_micros(line.at) if line.at else None, *line.marks] for line in lines]
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)


def read(text: str, first: int) -> Iterator[LogLine]:
    """The lines of a chunk that starts with line `first`."""
    for number, (line, at, *marks) in enumerate(json.loads(text), first):
        yield LogLine(number, line, None if at is None else from_micros(at), tuple(map(LineMark, marks)))
