"""Reads the directory of a zip that nobody vouches for, and refuses every zip that two readers may see differently."""

import stat
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from starforge.adapters.packing.zipwriter import DEFLATED, END, END_MARK, LOCAL, LOCAL_MARK, STORED, Member
from starforge.domain.capsule import CODE_LIMITS, CODE_TOP, MIB, CodeRule, code_problem, printable
from starforge.domain.errors import CodeRefused, Problem

_ENCRYPTED_FLAGS = 0x1 | 0x40 | 0x2000
_DESCRIPTOR_FLAG = 0x8
_UTF8_FLAG = 0x800
_DESCRIPTOR_BYTES = (12, 16, 20, 24)
_ZIP64_MARK, _ZIP64_LOCATOR_BYTES = b"PK\x06\x07", 20
_DIRECTORY_MAX_BYTES = 8 * MIB
_COPY_BYTES = MIB
_EMPTY_DEFLATED_BYTES = 2


@dataclass(frozen=True)
class Entry:
    """A member: its name as written, where its data starts, and what its headers say of it."""

    name: str
    member: Member
    data_start: int
    executable: bool
    is_folder: bool


def read_directory(file: BinaryIO) -> tuple[list[Entry], list[Problem]]:
    """Every member, in the order of their data, and the rules that they break. Raises CodeRefused if it is no zip."""
    size = file.seek(0, 2)
    directory_start = _checked_end(file, size)
    try:
        infos = zipfile.ZipFile(file).infolist()
    except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, EOFError, OSError) as error:
        raise CodeRefused([_not_a_zip(printable(str(error)))]) from error
    problems = [problem for info in infos for problem in _info_problems(info)]
    infos.sort(key=lambda info: info.header_offset)
    entries = _located(file, infos, directory_start, problems)
    return entries, problems


def code_path(name: str) -> str:
    """A member's path below the top folder."""
    return name.removeprefix(f"{CODE_TOP}/")


def packed_chunks(file: BinaryIO, entry: Entry) -> Iterator[bytes]:
    """The bytes of a member as they lie in the zip."""
    file.seek(entry.data_start)
    left = entry.member.packed
    while left and (chunk := file.read(min(left, _COPY_BYTES))):
        left -= len(chunk)
        yield chunk


def _checked_end(file: BinaryIO, size: int) -> int:
    """Where the directory starts, after checking that it and its end record are the last bytes, with no comment."""
    file.seek(max(0, size - END.size - _ZIP64_LOCATOR_BYTES))
    before, tail = _split_end(file.read())
    if len(tail) < END.size or not tail.startswith(END_MARK):
        raise CodeRefused([_bad_end(file, size)])
    _, disk, first_disk, here, count, directory, start, comment = END.unpack(tail)
    if comment or start + directory != size - END.size or before.startswith(_ZIP64_MARK):
        raise CodeRefused([_trailing("there is data beside its members, or it is a zip64")])
    if disk or first_disk or here != count:
        raise CodeRefused([_not_a_zip("it is a part of several")])
    if count > 2 * CODE_LIMITS.files or directory > _DIRECTORY_MAX_BYTES:
        message = f"there are {count:,} members and {CODE_LIMITS.files:,} files are the most."
        raise CodeRefused([code_problem(CodeRule.TOO_MANY_FILES, "", message)])
    return int(start)


def _split_end(tail: bytes) -> tuple[bytes, bytes]:
    return tail[: -END.size], tail[-END.size :]


def _bad_end(file: BinaryIO, size: int) -> Problem:
    file.seek(max(0, size - 65_536 - END.size))
    if END_MARK in file.read():
        return _trailing("there is data after its end")
    return _not_a_zip("it has no directory at its end")


def _info_problems(info: zipfile.ZipInfo) -> Iterator[Problem]:
    name, path = info.orig_filename, code_path(info.orig_filename)
    if not name.isascii() and not info.flag_bits & _UTF8_FLAG:
        yield code_problem(
            CodeRule.NAME_ENCODING, path, "its name is not marked as UTF-8; zip it again with UTF-8 names."
        )
    if info.flag_bits & _ENCRYPTED_FLAGS:
        yield code_problem(CodeRule.ENCRYPTED, path, "it is encrypted; zip it without a password.")
    if info.compress_type not in {STORED, DEFLATED}:
        yield code_problem(CodeRule.COMPRESSION_METHOD, path, "it is packed by a rare method; use deflate.")
    yield from _kind_problems(info, name)


def _kind_problems(info: zipfile.ZipInfo, name: str) -> Iterator[Problem]:
    path = code_path(name)
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if stat.S_ISLNK(mode):
        yield code_problem(CodeRule.LINK, path, "it is a link; put the file itself in.")
    elif kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        yield code_problem(CodeRule.SPECIAL_FILE, path, "it is a device, pipe or socket; leave it out.")
    elif (kind == stat.S_IFDIR) != name.endswith("/") and kind:
        yield code_problem(CodeRule.HEADER_MISMATCH, path, "its name and its kind differ on whether it is a folder.")
    if name.endswith("/") and (info.file_size or info.compress_size > _EMPTY_DEFLATED_BYTES):
        yield code_problem(CodeRule.SIZE_MISMATCH, path, "it is a folder with content.")


def _located(file: BinaryIO, infos: list[zipfile.ZipInfo], end: int, problems: list[Problem]) -> list[Entry]:
    """Entries with the place of their data; members must follow each other without a hole or an overlap."""
    entries = []
    expected = 0
    starts = [*(info.header_offset for info in infos), end]
    for info, following in zip(infos, starts[1:], strict=True):
        name = info.orig_filename
        data_start = _data_start(file, info)
        if info.header_offset != expected:
            rule = CodeRule.TRAILING_DATA if info.header_offset > expected else CodeRule.OVERLAP
            problems.append(code_problem(rule, code_path(name), "it does not start where the member before it ends."))
        if data_start is None:
            problems.append(
                code_problem(CodeRule.HEADER_MISMATCH, code_path(name), "its two headers differ; zip the code again.")
            )
            data_start = info.header_offset
        expected = _data_end(info, data_start, following)
        member = Member(info.compress_type, info.CRC, info.compress_size, info.file_size)
        executable = bool(info.external_attr >> 16 & stat.S_IXUSR)
        entries.append(Entry(name, member, data_start, executable, name.endswith("/")))
    if expected != end:
        rule = CodeRule.TRAILING_DATA if expected < end else CodeRule.OVERLAP
        problems.append(code_problem(rule, "", "the zip's last member does not end where its directory starts."))
    return entries


def _data_start(file: BinaryIO, info: zipfile.ZipInfo) -> int | None:
    """Where a member's data starts, or None if its own header says otherwise than the directory."""
    file.seek(info.header_offset)
    header = file.read(LOCAL.size)
    if len(header) < LOCAL.size:
        return None
    mark, _, flags, method, _, _, crc, packed, size, name_length, extra_length = LOCAL.unpack(header)
    name = file.read(name_length)
    written = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8_FLAG else "cp437")
    same = (mark, flags, method, name) == (LOCAL_MARK, info.flag_bits, info.compress_type, written)
    sizes_follow = flags & _DESCRIPTOR_FLAG
    if not same or not (sizes_follow or (crc, packed, size) == (info.CRC, info.compress_size, info.file_size)):
        return None
    return int(info.header_offset + LOCAL.size + name_length + extra_length)


def _data_end(info: zipfile.ZipInfo, data_start: int, following: int) -> int:
    end = data_start + info.compress_size
    has_descriptor = info.flag_bits & _DESCRIPTOR_FLAG and following - end in _DESCRIPTOR_BYTES
    return following if has_descriptor else end


def _not_a_zip(why: str) -> Problem:
    return code_problem(CodeRule.NOT_A_ZIP, "", f"the upload is no zip that can be read: {why}.")


def _trailing(why: str) -> Problem:
    return code_problem(CodeRule.TRAILING_DATA, "", f"the zip is not plain: {why}; zip the code again.")
