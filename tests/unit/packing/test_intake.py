"""Hostile zips, each refused with its rule; and those that people really make, taken."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.packing.intake import verify_code
from starforge.domain.capsule import CODE_LIMITS, MIB, CapsuleFile, CodeLimits, CodeRule
from starforge.domain.errors import CodeRefused

Member = tuple[str | zipfile.ZipInfo, bytes]


def info(name: str, *, mode: int = 0o100644, system: int = 3) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo("x", (1980, 1, 1, 0, 0, 0))
    made.filename = made.orig_filename = name
    made.external_attr = mode << 16
    made.create_system = system
    return made


def zipped(*members: Member, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content, compress_type=method)
    return out.getvalue()


def refused(tmp_path: Path, data: bytes, limits: CodeLimits = CODE_LIMITS) -> set[tuple[str | None, str | None]]:
    archive = tmp_path / "code.zip"
    archive.write_bytes(data)
    with pytest.raises(CodeRefused) as raised:
        verify_code(archive, limits=limits)
    assert list(tmp_path.iterdir()) == [archive]
    return {(problem.rule, problem.file) for problem in raised.value.problems}


def patched(data: bytes, old: bytes, new: bytes, count: int = -1) -> bytes:
    assert old in data
    return data.replace(old, new, count)


def central(data: bytes) -> int:
    (start,) = struct.unpack_from("<L", data, len(data) - 6)
    return int(start)


def with_central(data: bytes, offset: int, form: str, value: int) -> bytes:
    """`data` with a field of the first directory entry changed."""
    changed = bytearray(data)
    struct.pack_into(form, changed, central(data) + offset, value)
    return bytes(changed)


GOOD = zipped(("code/a.py", b"print(1)\n" * 50), ("code/b/c", b"x"))


def test_takes_good_code(tmp_path: Path) -> None:
    archive = tmp_path / "code.zip"
    archive.write_bytes(
        zipped(
            (info("code/", mode=0o40755), b""),
            (info("code/run.sh", mode=0o100755), b"#!/bin/sh\n"),
            (info("code/é.py"), b"1"),
            (info("code/dos.txt", mode=0, system=0), b"2"),
        )
    )
    code = verify_code(archive)
    assert [(file.path, file.size, file.executable) for file in code.files] == [
        ("dos.txt", 1, False),
        ("run.sh", 10, True),
        ("é.py", 1, False),
    ]
    assert code.bytes == archive.stat().st_size


def test_takes_a_zip_with_data_descriptors(tmp_path: Path) -> None:
    class Unseekable(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise io.UnsupportedOperation

        def tell(self) -> int:
            raise io.UnsupportedOperation

    out = Unseekable()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("code/a", b"1" * 1000)
        archive.writestr("code/b", b"2")
    (tmp_path / "code.zip").write_bytes(out.getvalue())
    assert [file.path for file in verify_code(tmp_path / "code.zip").files] == ["a", "b"]


def test_takes_an_empty_zip(tmp_path: Path) -> None:
    (tmp_path / "code.zip").write_bytes(zipped())
    assert verify_code(tmp_path / "code.zip").files == ()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("/etc/passwd", CodeRule.ABSOLUTE_PATH),
        ("code//etc/passwd", CodeRule.ABSOLUTE_PATH),
        ("C:/x", CodeRule.DRIVE_PATH),
        ("code/C:x", CodeRule.DRIVE_PATH),
        ("../../x", CodeRule.PARENT_PATH),
        ("code/../../x", CodeRule.PARENT_PATH),
        ("code/a/../../../x/", CodeRule.PARENT_PATH),
        ("code\\..\\x", CodeRule.BACKSLASH),
        ("code/a\0.py", CodeRule.CONTROL_CHARACTER),
        ("code/a\n.py", CodeRule.CONTROL_CHARACTER),
        ("code/e\u0301", CodeRule.NOT_NFC),
        ("code/./a", CodeRule.EMPTY_PATH),
        ("code/" + "a" * 241, CodeRule.PATH_TOO_LONG),
        ("code" + "/a" * 33, CodeRule.PATH_TOO_DEEP),
        ("code/.starforge/runner.pex", CodeRule.RESERVED_NAME),
        ("code/Starforge.py", CodeRule.RESERVED_NAME),
        ("a.py", CodeRule.TOP_FOLDER),
        ("other/", CodeRule.TOP_FOLDER),
        ("code", CodeRule.TOP_FOLDER),
    ],
)
def test_names(tmp_path: Path, name: str, rule: CodeRule) -> None:
    content = b"" if name.endswith("/") else b"x"
    assert rule in {found for found, _ in refused(tmp_path, zipped((info(name, mode=0), content)))}


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["code/a", "code/A"], CodeRule.CASE_COLLISION),
        (["code/\u00e9", "code/e\u0301"], CodeRule.UNICODE_COLLISION),
        (["code/a", "code/a/b"], CodeRule.FILE_AND_FOLDER),
    ],
)
def test_collisions(tmp_path: Path, names: list[str], rule: CodeRule) -> None:
    assert rule in {found for found, _ in refused(tmp_path, zipped(*((info(name), b"") for name in names)))}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicates(tmp_path: Path) -> None:
    assert refused(tmp_path, zipped(("code/a", b"1"), ("code/a", b"2"))) == {(CodeRule.DUPLICATE_PATH, "a")}


@pytest.mark.parametrize(
    ("mode", "rule"),
    [
        (0o120777, CodeRule.LINK),
        (0o010644, CodeRule.SPECIAL_FILE),
        (0o020644, CodeRule.SPECIAL_FILE),
        (0o140644, CodeRule.SPECIAL_FILE),
        (0o040755, CodeRule.HEADER_MISMATCH),
    ],
)
@pytest.mark.parametrize("system", [0, 3])
def test_links_and_special_files(tmp_path: Path, mode: int, rule: CodeRule, system: int) -> None:
    data = zipped((info("code/a", mode=mode, system=system), b"/etc/passwd"))
    assert refused(tmp_path, data) == {(rule, "a")}


def headers(data: bytes, *, flags: int) -> bytes:
    """Sets flags in both headers of the first member."""
    changed = bytearray(data)
    for at in (6, central(data) + 8):
        struct.pack_into("<H", changed, at, flags)
    return bytes(changed)


def both_methods(data: bytes, method: int) -> bytes:
    changed = bytearray(data)
    for at in (8, central(data) + 10):
        struct.pack_into("<H", changed, at, method)
    return bytes(changed)


@pytest.mark.parametrize("flag", [0x1, 0x41, 0x2000])
def test_encrypted(tmp_path: Path, flag: int) -> None:
    assert (CodeRule.ENCRYPTED, "a.py") in refused(tmp_path, headers(GOOD, flags=flag))


@pytest.mark.parametrize("method", [12, 14, 99])
def test_rare_methods(tmp_path: Path, method: int) -> None:
    assert (CodeRule.COMPRESSION_METHOD, "a.py") in refused(tmp_path, both_methods(GOOD, method))


def sized(data: bytes, size: int) -> bytes:
    """Declares another size of the first member, in both headers."""
    changed = bytearray(data)
    for at in (22, central(data) + 24):
        struct.pack_into("<L", changed, at, size)
    return bytes(changed)


@pytest.mark.parametrize("size", [0, 1, 449, 451, 100_000])
def test_sizes_that_are_not_so(tmp_path: Path, size: int) -> None:
    assert refused(tmp_path, sized(GOOD, size)) == {(CodeRule.SIZE_MISMATCH, "a.py")}


def test_a_bomb_with_honest_headers(tmp_path: Path) -> None:
    bomb = zipped(("code/bomb", b"\0" * 20 * MIB))
    assert refused(tmp_path, bomb) == {(CodeRule.COMPRESSION_RATIO, "bomb")}


def test_a_bomb_that_lies_is_stopped_at_what_it_declared(tmp_path: Path) -> None:
    bomb = zipped(("code/bomb", b"\0" * 20 * MIB))
    assert refused(tmp_path, sized(bomb, 1000)) == {(CodeRule.SIZE_MISMATCH, "bomb")}


def test_wrong_checksum_and_broken_data(tmp_path: Path) -> None:
    stored = zipped(("code/a", b"hello world"), method=zipfile.ZIP_STORED)
    assert refused(tmp_path, patched(stored, b"hello", b"jello")) == {(CodeRule.CHECKSUM_MISMATCH, "a")}
    broken = bytearray(GOOD)
    broken[30 + len("code/a.py")] ^= 0x06
    ((rule, path),) = refused(tmp_path, bytes(broken))
    assert path == "a.py"
    assert rule in {CodeRule.CHECKSUM_MISMATCH, CodeRule.SIZE_MISMATCH}


def test_every_problem_is_reported(tmp_path: Path) -> None:
    data = zipped((info("code/../x"), b""), (info("code/l", mode=0o120777), b"x"), (info("code/.starforge"), b""))
    assert refused(tmp_path, data) == {
        (CodeRule.LINK, "l"),
        (CodeRule.PARENT_PATH, "../x"),
        (CodeRule.RESERVED_NAME, ".starforge"),
    }


def test_secrets(tmp_path: Path) -> None:
    secret = b"ghp_" + b"a1B2" * 9
    assert refused(tmp_path, zipped(("code/a", secret))) == {(CodeRule.GITHUB_CREDENTIAL, "a")}


def test_too_many_and_too_large(tmp_path: Path) -> None:
    data = zipped(*((f"code/{number}", b"12345") for number in range(4)))
    rules = {rule for rule, _ in refused(tmp_path, data, CodeLimits(files=3, bytes=19))}
    assert rules == {CodeRule.TOO_MANY_FILES, CodeRule.TOO_MANY_BYTES}
    with (tmp_path / "code.zip").open("wb") as file:
        file.truncate(600 * MIB)
    with pytest.raises(CodeRefused) as raised:
        verify_code(tmp_path / "code.zip")
    assert [problem.rule for problem in raised.value.problems] == [CodeRule.TOO_MANY_BYTES]


def overlapping() -> bytes:
    """Two directory entries for one member."""
    start, end = central(GOOD), len(GOOD) - 22
    first = GOOD[start : start + 46 + len("code/a.py")]
    twin = first.replace(b"code/a.py", b"code/x.py")
    return _with_directory(GOOD[:start], [first, twin, GOOD[start + len(first) : end]])


def _with_directory(members: bytes, entries: Iterable[bytes]) -> bytes:
    directory = b"".join(entries)
    count = directory.count(b"PK\x01\x02")
    return (
        members
        + directory
        + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(members), 0)
    )


def quine_of_members() -> bytes:
    """A member within the data of another."""
    inner = zipped(("code/in", b"x"), method=zipfile.ZIP_STORED)
    local = inner[: central(inner)]
    outer = zipped(("code/out", local), method=zipfile.ZIP_STORED)
    offset = outer.index(local)
    entry = bytearray(inner[central(inner) : -22])
    struct.pack_into("<L", entry, 42, offset)
    return _with_directory(outer[: central(outer)], [outer[central(outer) : -22], bytes(entry)])


def hole() -> bytes:
    """Bytes between the last member and the directory."""
    start = central(GOOD)
    return _with_directory(GOOD[:start] + b"hidden", [GOOD[start:-22]])


def unlisted_member() -> bytes:
    start = central(GOOD)
    first = GOOD[start : start + 46 + len("code/a.py")]
    return _with_directory(GOOD[:start], [first])


def zip64() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("code/a", "w", force_zip64=True) as member:
        member.write(b"x")
    data = out.getvalue()
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    start = central(data)
    directory = data[start:-22] + locator
    return data[:start] + directory + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), start, 0)


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (overlapping, CodeRule.OVERLAP),
        (quine_of_members, CodeRule.OVERLAP),
        (hole, CodeRule.TRAILING_DATA),
        (unlisted_member, CodeRule.TRAILING_DATA),
        (zip64, CodeRule.TRAILING_DATA),
        (lambda: GOOD + b"x", CodeRule.TRAILING_DATA),
        (lambda: b"#!/bin/sh\n" + GOOD, CodeRule.TRAILING_DATA),
        (lambda: GOOD + GOOD, CodeRule.TRAILING_DATA),
        (lambda: GOOD[:-2] + b"\x01\x00!", CodeRule.TRAILING_DATA),
        (lambda: b"", CodeRule.NOT_A_ZIP),
        (lambda: b"x" * 100_000, CodeRule.NOT_A_ZIP),
        (lambda: GOOD[:-23], CodeRule.NOT_A_ZIP),
        (lambda: GOOD[: len(GOOD) // 2], CodeRule.NOT_A_ZIP),
        (lambda: GOOD[:-18] + b"\x01" + GOOD[-17:], CodeRule.NOT_A_ZIP),
        (lambda: patched(GOOD, b"PK\x01\x02", b"PK\x01\x03"), CodeRule.NOT_A_ZIP),
        (lambda: patched(GOOD, b"code/a.py", b"code/b.py", 1), CodeRule.HEADER_MISMATCH),
        (lambda: with_central(GOOD, 24, "<L", 451), CodeRule.HEADER_MISMATCH),
        (lambda: with_central(GOOD, 42, "<L", 5), CodeRule.HEADER_MISMATCH),
        (lambda: with_central(GOOD, 42, "<L", 0xFFFFFF00), CodeRule.HEADER_MISMATCH),
        (lambda: headers(zipped((info("code/\u00e9"), b"")), flags=0), CodeRule.NAME_ENCODING),
    ],
)
def test_zips_that_two_readers_see_differently(tmp_path: Path, make: Callable[[], bytes], rule: CodeRule) -> None:
    assert rule in {found for found, _ in refused(tmp_path, make())}


def test_data_behind_the_end_of_a_deflate_stream(tmp_path: Path) -> None:
    data = bytearray(zipped(("code/a", b"x" * 100)))
    start = 30 + len("code/a")
    stream = bytes(data[start : central(bytes(data))])
    entry = bytearray(data[central(bytes(data)) : -22])
    local = bytearray(data[:start])
    for header, at in ((local, 18), (entry, 20)):
        struct.pack_into("<L", header, at, len(stream) + 4)
    hidden = _with_directory(bytes(local) + stream + b"evil", [bytes(entry)])
    assert refused(tmp_path, hidden) == {(CodeRule.SIZE_MISMATCH, "a")}


def test_a_deflate_stream_padded_with_nothing(tmp_path: Path) -> None:
    """Empty blocks make a stream long without making it say more: it is read to its end and no further."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    stream = packer.compress(b"x") + b"".join(packer.flush(zlib.Z_FULL_FLUSH) for _ in range(1000))
    cut = zipped(("code/a", b"x"), method=zipfile.ZIP_DEFLATED)
    start = 30 + len("code/a")
    entry, local = bytearray(cut[central(cut) : -22]), bytearray(cut[:start])
    for header, at in ((local, 18), (entry, 20)):
        struct.pack_into("<L", header, at, len(stream))
    assert refused(tmp_path, _with_directory(bytes(local) + stream, [bytes(entry)])) == {(CodeRule.SIZE_MISMATCH, "a")}


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_a_changed_byte_gives_a_refusal_or_the_same_files(
    tmp_path_factory: pytest.TempPathFactory, at: int, to: int
) -> None:
    archive = tmp_path_factory.mktemp("changed") / "code.zip"
    archive.write_bytes(GOOD[:at] + bytes([to]) + GOOD[at + 1 :])
    try:
        files = verify_code(archive).files
    except CodeRefused as error:
        assert error.problems  # noqa: PT017
    else:
        assert [file.sha256 for file in files] == [file.sha256 for file in _good_files(archive)]


def _good_files(archive: Path) -> tuple[CapsuleFile, ...]:
    archive.write_bytes(GOOD)
    return verify_code(archive).files
