"""Parts of a log: any lines of them are read by a range of the object, and what can't be read is told."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.chunks import CHUNK_LINES
from starforge.domain.errors import NotFound, ObjectStoreUnavailable
from starforge.domain.log_parts import pack, read_all, unpack, whole
from starforge.domain.logs import LineMark, LogKind, LogLine, LogSource
from starforge.domain.names import JobId, RunKey
from starforge.domain.ports import ObjectStore
from starforge.domain.queries import LogBlock, LogRange, StoredLines
from tests.unit.actions.fakes import START, FakeObjects, Faults, HandClock, as_port

RUN = RunKey(JobId("job-1"), 1)
SOURCE = LogSource(RUN, "driver", LogKind.DRIVER)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MARKS = st.lists(st.sampled_from(LineMark), max_size=2).map(tuple)


@dataclass
class Archive:
    """An object store that knows how much of it was read."""

    down: bool = False
    asked: list[tuple[int, int | None]] = field(default_factory=list)
    stored: FakeObjects = field(default_factory=lambda: FakeObjects(Faults(), HandClock()))

    @property
    def port(self) -> ObjectStore:
        return as_port(self)

    def keep(self, lines: list[LogLine]) -> tuple[LogBlock, ...]:
        content, part = pack(SOURCE, lines)
        self.stored.objects[part.key] = content
        return part.blocks

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        self.asked.append((start, length))
        self.stored.down = self.down
        return self.stored.read(key, start=start, length=length)


def lines_of(first: int, last: int) -> list[LogLine]:
    return [LogLine(number, f"line {number}", START) for number in range(first, last + 1)]


def asked(first: int, last: int) -> LogRange:
    return LogRange(RUN, "driver", first, last)


def touched(blocks: tuple[LogBlock, ...], first: int, last: int) -> list[LogBlock]:
    return [block for block in blocks if block.last >= first and block.first <= last]


@given(st.lists(st.builds(LogLine, st.just(0), TEXTS, st.none() | st.just(START), MARKS), min_size=1, max_size=30))
def test_any_lines_are_read_back_as_they_were(drawn: list[LogLine]) -> None:
    lines = [LogLine(number, line.text, line.at, line.marks) for number, line in enumerate(drawn, 7)]
    content, part = pack(SOURCE, lines)
    assert list(unpack(content, part.blocks)) == lines
    assert (part.first, part.last) == (7, lines[-1].number)


def test_a_page_costs_a_range_as_long_as_itself() -> None:
    archive = Archive()
    blocks = archive.keep(lines_of(1, 50_000))
    size = len(archive.stored.objects[blocks[0].key])
    first = 24 * CHUNK_LINES + 500
    some = touched(blocks, first, first + 99)
    assert whole(archive.port, asked(first, first + 99), StoredLines([], some)) == lines_of(first, first + 99)
    ((start, length),) = archive.asked
    assert start > size / 3
    assert length is not None
    assert length < size / 40


def test_lines_of_two_parts_and_of_rows_are_one_range() -> None:
    archive = Archive()
    blocks = (*archive.keep(lines_of(1, 1500)), *archive.keep(lines_of(1501, 1600)))
    stored = StoredLines(lines_of(1601, 1700), touched(blocks, 1400, 1600))
    assert whole(archive.port, asked(1400, 1700), stored) == lines_of(1400, 1700)
    assert len(archive.asked) == 2


def test_the_same_lines_are_the_same_object_and_others_another() -> None:
    archive = Archive()
    (one,), (again,), (other,) = (archive.keep(lines) for lines in (lines_of(1, 2), lines_of(1, 2), lines_of(1, 3)))
    assert one.key == again.key != other.key


def test_a_store_that_is_away_is_told_for_what_it_has_and_asked_once() -> None:
    archive = Archive()
    blocks = archive.keep(lines_of(1, 10))
    archive.down = True
    wanted = {asked(1, 5): StoredLines([], blocks), asked(2, 5): StoredLines([], blocks)}
    live = {LogRange(RUN, "pod/w/main", 1, 2): StoredLines(lines_of(1, 2))}
    found = read_all(archive.port, wanted | live)
    first, second, rows = found.values()
    assert isinstance(first, ObjectStoreUnavailable)
    assert first is second
    assert first.message.startswith("Lines 1 to 5 of the log driver of job-1/1 are archived, and can't be read right ")
    assert rows == lines_of(1, 2)
    assert len(archive.asked) == 1


@pytest.mark.parametrize("left", [None, b"", b"xx", b"cut"])
def test_an_object_that_is_lost_or_damaged_is_told(left: bytes | None) -> None:
    archive = Archive()
    blocks = archive.keep(lines_of(1, 10))
    content = archive.stored.objects.pop(blocks[0].key)
    if left is not None:
        archive.stored.objects[blocks[0].key] = content[:-9] if left == b"cut" else left
    (found,) = read_all(archive.port, {asked(1, 5): StoredLines([], blocks)}).values()
    assert isinstance(found, NotFound)
    assert "are lost" in found.message
    with pytest.raises(NotFound):
        whole(archive.port, asked(1, 5), StoredLines([], blocks))
