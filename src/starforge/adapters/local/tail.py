"""Reads a growing file line by line from a byte offset on, without ever reading a byte twice."""

from dataclasses import dataclass
from pathlib import Path

from starforge.domain.logs import cut_at

CHUNK = 256 * 1024


@dataclass(frozen=True)
class Lines:
    """Whole lines without their ends; `offset` is the byte after them, `at_end` that nothing follows yet.

    `goes_on` says that the last one is a piece of a line that is longer than CHUNK.
    """

    lines: tuple[bytes, ...]
    offset: int
    at_end: bool
    goes_on: bool = False


def read_lines(path: Path, offset: int, *, final: bool) -> Lines:
    """Lines after `offset`, about CHUNK bytes at most. `final`: the file has ended, so a last line may lack its end."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(CHUNK)
    except FileNotFoundError:
        data = b""
    at_end = len(data) < CHUNK
    cut = data.rfind(b"\n") + 1
    goes_on = cut == 0 and not at_end
    if goes_on:
        cut = cut_at(data, len(data))
    elif final and at_end:
        cut = len(data)
    whole = data[:cut]
    return Lines(tuple(whole.removesuffix(b"\n").split(b"\n")) if whole else (), offset + cut, at_end, goes_on)
