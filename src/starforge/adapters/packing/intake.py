"""Verifies a zip of code that came from outside. It is never unpacked to disk: each member is read through a bound."""

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from starforge.adapters.packing.archive import file_sha256, is_bomb, secret_problem
from starforge.adapters.packing.secrets import SCANNED_MAX_BYTES, secret_rules
from starforge.adapters.packing.zipreader import Entry, code_path, packed_chunks, read_directory
from starforge.adapters.packing.zipwriter import DEFLATED
from starforge.domain.capsule import (
    CODE_LIMITS,
    CODE_TOP,
    MIB,
    CapsuleFile,
    CodeLimits,
    CodeRule,
    PackedCode,
    code_problem,
    code_problems,
    files_digest,
    path_problems,
    size_problems,
)
from starforge.domain.errors import CodeRefused, Problem

_STEP_BYTES = MIB
_HEADERS_MAX_BYTES = 32 * MIB


class _MemberWrong(Exception):
    def __init__(self, rule: CodeRule, message: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message


def verify_code(archive: Path, *, limits: CodeLimits = CODE_LIMITS) -> PackedCode:
    """The code in `archive`. Raises CodeRefused with every rule that is broken, before anything large is inflated."""
    size = archive.stat().st_size
    if size > limits.bytes + _HEADERS_MAX_BYTES:
        raise CodeRefused(size_problems(count=0, size=size, limits=limits))
    with archive.open("rb") as file:
        entries, problems = read_directory(file)
        problems += _name_problems(entries, limits) + _bomb_problems(entries)
        if problems:
            raise CodeRefused(problems)
        files = _verified(file, [entry for entry in entries if not entry.is_folder])
    return PackedCode(files_digest(files), tuple(files), archive, size, file_sha256(archive))


def _name_problems(entries: list[Entry], limits: CodeLimits) -> list[Problem]:
    problems = []
    for entry in entries:
        name = entry.name.removesuffix("/")
        if entry.is_folder and name != CODE_TOP:
            problems.extend(path_problems(code_path(name)))
        if not entry.name.startswith(f"{CODE_TOP}/") and not path_problems(name):
            message = f"it is not below {CODE_TOP}/, the one folder that the zip must have at its top."
            problems.append(code_problem(CodeRule.TOP_FOLDER, entry.name, message))
    files = [(code_path(entry.name), entry.member.size) for entry in entries if not entry.is_folder]
    return problems + code_problems(files, limits)


def _bomb_problems(entries: list[Entry]) -> list[Problem]:
    message = "it unpacks to more than a hundred times its size; leave it out, or make it in the job."
    return [code_problem(CodeRule.COMPRESSION_RATIO, code_path(e.name), message) for e in entries if is_bomb(e.member)]


def _verified(file: BinaryIO, entries: list[Entry]) -> list[CapsuleFile]:
    files, problems = [], []
    for entry in entries:
        path = code_path(entry.name)
        try:
            sha256, rules = _read(file, entry)
        except _MemberWrong as wrong:
            problems.append(code_problem(wrong.rule, path, wrong.message))
            continue
        files.append(CapsuleFile(path, entry.member.size, sha256, entry.executable))
        problems.extend(secret_problem(rule, path) for rule in rules)
    if problems:
        raise CodeRefused(problems)
    return sorted(files, key=lambda found: found.path.encode())


def _read(file: BinaryIO, entry: Entry) -> tuple[str, list[CodeRule]]:
    digest, crc, size, content = hashlib.sha256(), 0, 0, bytearray()
    for chunk in _content(file, entry):
        size += len(chunk)
        if size > entry.member.size:
            raise _MemberWrong(CodeRule.SIZE_MISMATCH, "it is larger than its header says; zip the code again.")
        digest.update(chunk)
        crc = zlib.crc32(chunk, crc)
        if entry.member.size <= SCANNED_MAX_BYTES:
            content += chunk
    if size != entry.member.size:
        raise _MemberWrong(CodeRule.SIZE_MISMATCH, "it is smaller than its header says; zip the code again.")
    if crc != entry.member.crc:
        raise _MemberWrong(CodeRule.CHECKSUM_MISMATCH, "its checksum is wrong; upload it again.")
    return digest.hexdigest(), secret_rules(bytes(content))


def _content(file: BinaryIO, entry: Entry) -> Iterator[bytes]:
    if entry.member.method == DEFLATED:
        yield from _inflated(packed_chunks(file, entry))
    else:
        yield from packed_chunks(file, entry)


def _inflated(chunks: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    for chunk in chunks:
        left = chunk
        while left:
            yield _step(unpacker, left)
            left = unpacker.unconsumed_tail
            if unpacker.unused_data:
                raise _MemberWrong(CodeRule.SIZE_MISMATCH, "there is data behind its end; zip the code again.")
    while not unpacker.eof:
        more = _step(unpacker, unpacker.unconsumed_tail)
        if not more:
            raise _MemberWrong(CodeRule.SIZE_MISMATCH, "it breaks off; upload it again.")
        yield more


def _step(unpacker: "zlib._Decompress", data: bytes) -> bytes:
    try:
        return unpacker.decompress(data, _STEP_BYTES)
    except zlib.error as error:
        raise _MemberWrong(CodeRule.CHECKSUM_MISMATCH, "it can't be unpacked; upload it again.") from error
