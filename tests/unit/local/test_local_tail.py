from pathlib import Path

import pytest

from starforge.adapters.local import tail
from starforge.adapters.local.tail import read_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "head.log"


def test_a_file_that_is_not_there_yet_has_no_lines(log: Path) -> None:
    found = read_lines(log, 0, final=False)
    assert (found.lines, found.offset, found.at_end) == ((), 0, True)


def test_only_whole_lines_are_told_while_the_file_grows(log: Path) -> None:
    log.write_bytes(b"one\n\ntw")
    first = read_lines(log, 0, final=False)
    assert first.lines == (b"one", b"")
    log.write_bytes(b"one\n\ntwo\n")
    assert read_lines(log, first.offset, final=False).lines == (b"two",)


def test_the_last_line_may_lack_its_end_when_the_file_has_ended(log: Path) -> None:
    log.write_bytes(b"one\ntwo")
    assert read_lines(log, 0, final=True).lines == (b"one", b"two")


def test_long_files_come_in_pieces_with_nothing_lost_or_twice(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "CHUNK", 16)
    text = b"\n".join(b"line %d" % number for number in range(20)) + b"\n" + b"x" * 50
    log.write_bytes(text)
    pieces: list[bytes] = []
    offset, at_end = 0, False
    while not at_end:
        found = read_lines(log, offset, final=True)
        pieces += found.lines
        offset, at_end = found.offset, found.at_end
    assert pieces[:20] == [b"line %d" % number for number in range(20)]
    assert b"".join(pieces[20:]) == b"x" * 50


def test_a_long_line_goes_on_in_the_next_piece_without_halving_a_character(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "CHUNK", 16)
    log.write_bytes(b"x" + "é".encode() * 20 + b"\nend\n")
    told: list[tuple[tuple[bytes, ...], bool]] = []
    offset, at_end = 0, False
    while not at_end:
        found = read_lines(log, offset, final=False)
        told.append((found.lines, found.goes_on))
        offset, at_end = found.offset, found.at_end
    assert [goes_on for _, goes_on in told] == [True, True, False]
    assert [lines for lines, goes_on in told if goes_on] == [(b"x" + "é".encode() * 7,), ("é".encode() * 8,)]
    assert told[-1][0] == ("é".encode() * 5, b"end")
