"""Reads lines wherever they are: rows by threads of the database, what was moved by those of the object store."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from starforge.domain.errors import StarForgeError
from starforge.domain.log_parts import read_all
from starforge.domain.logs import LogLine
from starforge.domain.ports import Ports
from starforge.domain.queries import LogRange, StoredLines

AT_ONCE = 4
"""Threads that read from the object store for one question."""


class Ask(Protocol):
    """Makes a blocking call off the event loop, as `Services.thread` does."""

    async def __call__(self, call: Callable[[Any], Any], keys: Any, /) -> Any: ...


class LogReader:
    """`ask` asks the database, `ask_objects` the object store."""

    def __init__(self, ports: Ports, ask: Ask, ask_objects: Ask) -> None:
        self._ports, self._ask, self._ask_objects = ports, ask, ask_objects

    async def ranges(self, asked: Sequence[LogRange]) -> Mapping[LogRange, Sequence[LogLine] | StarForgeError]:
        """Lines of each, or why they can't be had: ObjectStoreUnavailable, or NotFound if they are lost."""
        stored: Mapping[LogRange, StoredLines] = await self._ask(self._ports.store.log_ranges, asked)
        found: dict[LogRange, Sequence[LogLine] | StarForgeError] = {
            which: part.lines for which, part in stored.items() if not part.blocks
        }
        moved = [which for which in stored if which not in found]
        groups = [{which: stored[which] for which in moved[start::AT_ONCE]} for start in range(AT_ONCE)]
        for part in await asyncio.gather(*(self._ask_objects(self._read_all, group) for group in groups if group)):
            found.update(part)
        return found

    def _read_all(
        self, stored: Mapping[LogRange, StoredLines]
    ) -> Mapping[LogRange, Sequence[LogLine] | StarForgeError]:
        return read_all(self._ports.objects, stored)

    async def lines(self, which: LogRange) -> Sequence[LogLine]:
        """Lines of one range; raises why they can't be had."""
        found = (await self.ranges([which]))[which]
        if isinstance(found, StarForgeError):
            raise found
        return found
