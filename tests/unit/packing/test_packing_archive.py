"""Zips that depend on nothing but their members, and that other readers take."""

import io
import os
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from starforge.adapters.packing.archive import SMALL_BYTES, SourceFile, pack_files, read_chunks
from starforge.adapters.packing.intake import verify_code
from starforge.domain.capsule import CapsuleFile, CodeRule
from starforge.domain.errors import Problem


def source(path: str, content: bytes, *, size: int | None = None, executable: bool = False) -> SourceFile:
    return SourceFile(path, len(content) if size is None else size, executable, partial(iter, [content]))


def pack(*files: SourceFile) -> tuple[bytes, list[CapsuleFile], list[Problem]]:
    out = io.BytesIO()
    packed, problems = pack_files(files, top="code", to=out)
    return out.getvalue(), packed, problems


def test_members_are_fixed_in_all_but_their_content() -> None:
    data, _, problems = pack(source("a.py", b"x" * 100), source("bin/é", b"\x00" * 5, executable=True))
    assert problems == []
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        assert zipped.testzip() is None
        first, second = zipped.infolist()
        assert [first.filename, second.filename] == ["code/a.py", "code/bin/é"]
        for info, mode in ((first, 0o100644), (second, 0o100755)):
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert (info.create_system, info.external_attr >> 16) == (3, mode)
            assert info.compress_type == zipfile.ZIP_DEFLATED
            assert not info.flag_bits & 0x8  # no data descriptor
            assert (info.extra, info.comment) == (b"", b"")


def test_an_empty_file_and_no_file() -> None:
    data, packed, _ = pack(source("empty", b""))
    assert packed[0].size == 0
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        assert zipped.read("code/empty") == b""
    assert zipfile.ZipFile(io.BytesIO(pack()[0])).namelist() == []


def test_small_and_large_files_keep_their_order() -> None:
    large = os.urandom(SMALL_BYTES + 1)
    files = [source(f"{number:03}", large if number % 50 == 0 else b"%d" % number) for number in range(150)]
    data, packed, _ = pack(*files)
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        assert zipped.namelist() == [f"code/{number:03}" for number in range(150)]
        assert zipped.read("code/050") == large
        assert zipped.testzip() is None
    assert [file.path for file in packed] == [f"{number:03}" for number in range(150)]


def test_what_would_look_like_a_bomb_is_stored(tmp_path: Path) -> None:
    zeros = tmp_path / "zeros"
    zeros.write_bytes(b"\0" * 5_000_000)
    data, packed, problems = pack(
        source("a", b"1"), SourceFile("zeros", 5_000_000, False, partial(read_chunks, zeros)), source("zz", b"2")
    )
    assert problems == []
    archive = tmp_path / "code.zip"
    archive.write_bytes(data)
    assert verify_code(archive).files == tuple(packed)
    with zipfile.ZipFile(archive) as zipped:
        assert zipped.getinfo("code/zeros").compress_type == zipfile.ZIP_STORED
        assert zipped.read("code/zz") == b"2"


def test_files_that_change_are_each_refused() -> None:
    large = b"x" * (SMALL_BYTES + 1)
    grown, shrunk, late = (
        source("grown", b"12", size=1),
        source("shrunk", b"1", size=2),
        source("z", large, size=2 << 20),
    )
    _, packed, problems = pack(grown, source("good", b"1"), shrunk, late)
    assert [file.path for file in packed] == ["good"]
    assert [(problem.rule, problem.file) for problem in problems] == [
        (CodeRule.CHANGED_WHILE_READ, "grown"),
        (CodeRule.CHANGED_WHILE_READ, "shrunk"),
        (CodeRule.CHANGED_WHILE_READ, "z"),
    ]


def replaced_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize("change", [replaced_by_link, Path.unlink])
def test_a_file_that_became_a_link_or_went_is_refused(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1")
    change(path)
    _, packed, problems = pack(SourceFile("a", 1, False, partial(read_chunks, path)))
    assert packed == []
    assert [problem.rule for problem in problems] == [CodeRule.UNREADABLE]


def test_each_secret_is_told_by_path_and_rule() -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    _, _, problems = pack(source("a.py", secret.encode()), source("b.py", b"fine"), source("c.py", secret.encode()))
    assert [(problem.rule, problem.file) for problem in problems] == [
        (CodeRule.AWS_KEY, "a.py"),
        (CodeRule.AWS_KEY, "c.py"),
    ]
    assert secret not in str(problems)


def test_the_end_record_counts_what_is_there() -> None:
    data, _, _ = pack(*(source(f"{number}", b"") for number in range(300)))
    assert struct.unpack("<4s4H2LH", data[-22:])[3:5] == (300, 300)
