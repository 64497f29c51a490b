"""Lines that are rows no more: parts of a log, each an object of blocks of which any few can be read alone.

A block is a chunk as a gzip member of its own, so a page costs a range of the object that is as long as the page. Where
each block lies stays in the database.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby

from starforge.domain import chunks
from starforge.domain.errors import NotFound, ObjectStoreUnavailable, StarForgeError
from starforge.domain.logs import LogLine, LogSource, checksum
from starforge.domain.ports import ObjectStore, Store
from starforge.domain.queries import LogBlock, LogPart, LogRange, StoredLines

PART_LINES, PART_BYTES = 100_000, 16 << 20
"""A part has no more lines and not many more bytes of text, so that it can be made in memory."""


def pack(source: LogSource, lines: Sequence[LogLine]) -> tuple[bytes, LogPart]:
    """The object that holds `lines`, and where in it they are.

    It is named by its content: what a note points to is never replaced by anything else, whoever stores what when.
    """
    groups = list(chunks.split(lines))
    members = [gzip.compress(chunks.write(some).encode(), mtime=0) for some in groups]
    key = f"logs/{source.run.job}/{source.run.attempt}/{source.key}.{lines[0].number}-{checksum(members)[:32]}.lines.gz"
    starts = accumulate(map(len, members), initial=0)
    blocks = [
        LogBlock(key, some[0].number, some[-1].number, start, len(member))
        for some, member, start in zip(groups, members, starts, strict=False)
    ]
    return b"".join(members), LogPart(source.run, source.key, tuple(blocks))


def unpack(content: bytes, blocks: Iterable[LogBlock], *, offset: int = 0) -> Iterator[LogLine]:
    """The lines of `blocks`, of whose object `content` is what begins at `offset`; ValueError if it is not theirs."""
    for block in blocks:
        start = block.start - offset
        try:
            body = gzip.decompress(content[start : start + block.size]).decode()
        except (EOFError, OSError, zlib.error) as wrong:
            raise ValueError(f"lines {block.first} to {block.last} are damaged") from wrong
        yield from chunks.read(body, block.first)


def read_log(store: Store, objects: ObjectStore, which: LogRange) -> Sequence[LogLine]:
    """Lines of a log, wherever they are; raises as `whole` does."""
    return whole(objects, which, store.log_ranges([which])[which])


def whole(objects: ObjectStore, which: LogRange, stored: StoredLines) -> Sequence[LogLine]:
    """All lines of a range. ObjectStoreUnavailable if it has some and can't be asked, NotFound if it has lost them."""
    lines: list[LogLine] = []
    for key, blocks in groupby(stored.blocks, lambda block: block.key):
        lines.extend(_of_object(objects, which, key, list(blocks)))
    last = stored.lines[0].number - 1 if stored.lines else which.last
    return [line for line in lines if which.first <= line.number <= last] + list(stored.lines)


def read_all(
    objects: ObjectStore, asked: Mapping[LogRange, StoredLines]
) -> Mapping[LogRange, Sequence[LogLine] | StarForgeError]:
    """`whole` of many, each or why it can't be had; a store that can't be asked is not asked again for the next."""
    found: dict[LogRange, Sequence[LogLine] | StarForgeError] = {}
    outage: ObjectStoreUnavailable | None = None
    for which, stored in asked.items():
        try:
            found[which] = outage if outage and stored.blocks else whole(objects, which, stored)
        except ObjectStoreUnavailable as error:
            found[which] = outage = error
        except NotFound as error:
            found[which] = error
    return found


def _of_object(objects: ObjectStore, which: LogRange, key: str, blocks: Sequence[LogBlock]) -> Sequence[LogLine]:
    start, end = blocks[0].start, blocks[-1].start + blocks[-1].size
    try:
        return list(unpack(objects.read(key, start=start, length=end - start), blocks, offset=start))
    except ObjectStoreUnavailable as outage:
        raise ObjectStoreUnavailable(f"{_named(which)} are archived, and can't be read right now. {outage}") from outage
    except (NotFound, ValueError) as lost:
        raise NotFound(f"{_named(which)} are lost: the object {key} that holds them is missing or damaged.") from lost


def _named(which: LogRange) -> str:
    return f"Lines {which.first} to {which.last} of the log {which.source} of {which.run}"


__all__ = ["PART_BYTES", "PART_LINES", "pack", "read_all", "read_log", "unpack", "whole"]
