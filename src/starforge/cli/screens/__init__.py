"""Where a job that is followed is shown: a live terminal, plain lines, or JSON lines."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from starforge.cli.answers import Json


class Screen(AbstractContextManager["Screen"], Protocol):
    """Gets all that comes, in order."""

    def job(self, change: Json) -> None:
        """The job as it is now; not called for bookmarks."""

    def lines(self, lines: Sequence[Json]) -> None:
        """Log lines."""

    def note(self, text: str) -> None:
        """A sentence about the connection or about lines that are missing."""


def as_printed(lines: Sequence[Json]) -> str:
    """Log lines as they were printed: one that is cut goes on in the next."""
    return "".join(line["text"] if "CUT" in line["marks"] else f"{line['text']}\n" for line in lines)
