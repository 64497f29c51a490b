"""Output goes to stdout as it is and framed to the stream, and neither can end the job."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from starforge.domain.framing import read_frame
from starforge.domain.observation import RawLine
from starforge.domain.unframing import FrameParser, Missing
from starforge.domain.wire import Refused, RefusedWhy
from starforge.runner.relay import Relay
from starforge.runner.stream import Stream, open_stream

NONCE = "n0nce"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    yield read, write
    for fd in (read, write):
        try:
            os.close(fd)
        except OSError as error:
            assert error.errno == 9  # a test closed it  # noqa: PT017


@pytest.fixture
def driver_log(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "driver.log"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    yield path, fd
    os.close(fd)


def texts(data: bytes) -> list[str]:
    parser = FrameParser(trusts=NONCE.__eq__)
    parsed = parser.feed(RawLine(line) for line in data.split(b"\n")[:-1])
    return [line.text for line in parsed.lines]


def test_stdout_gets_the_exact_bytes(tmp_path: Path, driver_log: tuple[Path, int]) -> None:
    stream = open_stream(str(tmp_path / "stream"))
    relay = Relay(stream, nonce=NONCE, stdout=driver_log[1])
    for piece in (b"\x00\xff par", b"tial\r\n", b"\n", b""):
        relay.write(piece)
    assert driver_log[0].read_bytes() == b"\x00\xff partial\r\n\n"
    assert texts((tmp_path / "stream").read_bytes()) == ["\ufffd\ufffd partial\r", ""]


def test_messages_start_on_a_line_of_their_own(tmp_path: Path, driver_log: tuple[Path, int]) -> None:
    relay = Relay(open_stream(str(tmp_path / "stream")), nonce=NONCE, stdout=driver_log[1])
    relay.write(b"no newline")
    relay.report({"type": "refused", "why": "claimed", "message": "é"})
    first, second = driver_log[0].read_text().splitlines()
    assert first == "no newline"
    assert json.loads(second.removeprefix("::starforge:: "))["nonce"] == NONCE
    parser = FrameParser(trusts=NONCE.__eq__)
    parsed = parser.feed(RawLine(line) for line in (tmp_path / "stream").read_bytes().splitlines())
    assert [line.text for line in parsed.lines] == ["no newline"]
    assert parsed.messages == (Refused(RefusedWhy.CLAIMED, "é"),)


@pytest.mark.parametrize("path", [None, "", "/proc/no/such/stream", "/"])
def test_no_stream(path: str | None, driver_log: tuple[Path, int]) -> None:
    assert open_stream(path) is None
    Relay(None, nonce=NONCE, stdout=driver_log[1]).say("hello")
    assert driver_log[0].read_text() == "starforge: hello\n"


def test_a_pipe_that_nobody_reads_is_no_stream(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert open_stream(str(tmp_path / "fifo")) is None


def test_a_stream_that_breaks_is_left(pipe: tuple[int, int], driver_log: tuple[Path, int]) -> None:
    relay = Relay(Stream(pipe[1]), nonce=NONCE, stdout=driver_log[1])
    relay.write(b"one\n")
    os.close(pipe[0])
    relay.write(b"two\n")
    relay.write(b"three\n")
    assert driver_log[0].read_text() == "one\ntwo\nthree\n"


def test_a_stdout_that_breaks_is_left(pipe: tuple[int, int], tmp_path: Path) -> None:
    os.close(pipe[0])
    relay = Relay(open_stream(str(tmp_path / "stream")), nonce=NONCE, stdout=pipe[1])
    relay.write(b"one\n")
    relay.write(b"two\n")
    assert texts((tmp_path / "stream").read_bytes()) == ["one", "two"]


def test_a_stuck_stream_loses_lines_and_says_how_many_bytes(
    pipe: tuple[int, int], driver_log: tuple[Path, int]
) -> None:
    stream = Stream(pipe[1], patience_s=0)
    relay = Relay(stream, nonce=NONCE, stdout=driver_log[1])
    line = b"x" * 1000 + b"\n"
    written = 100
    for _ in range(written):
        relay.write(line)
    before = os.read(pipe[0], 1 << 20)
    relay.write(b"and on\n")
    after = os.read(pipe[0], 1 << 20)
    parser = FrameParser(trusts=NONCE.__eq__)
    parsed = parser.feed(RawLine(each) for each in (before + after).splitlines())
    kept = len(texts(before))
    assert 0 < kept < written
    assert [each.text for each in parsed.lines[kept:]] == ["and on"]
    assert parsed.missing == (Missing(kept, (written - kept) * len(line)),)
    assert driver_log[0].read_bytes() == line * written + b"and on\n"


def test_places_are_those_of_rays_driver_log(tmp_path: Path, driver_log: tuple[Path, int]) -> None:
    os.write(driver_log[1], b"Runtime env is setting up.\n")
    relay = Relay(open_stream(str(tmp_path / "stream")), nonce=NONCE, stdout=driver_log[1])
    relay.write(b"one\ntw")
    relay.write(b"o\n")
    ray = driver_log[0].read_bytes()
    for line in (tmp_path / "stream").read_bytes().splitlines():
        _, frame = read_frame(line)
        assert frame is not None
        assert frame.span is not None
        assert ray[slice(*frame.span)] == frame.piece + b"\n" * frame.ends
