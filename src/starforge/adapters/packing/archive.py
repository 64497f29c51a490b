"""Packs files into a reproducible zip while hashing and searching each for secrets, all in one reading."""

import hashlib
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starforge.adapters.packing.secrets import SCANNED_MAX_BYTES, secret_rules
from starforge.adapters.packing.zipwriter import DEFLATED, STORED, Member, ZipWriter, deflater
from starforge.domain.capsule import MIB, CapsuleFile, CodeRule, code_problem
from starforge.domain.errors import Problem

CHUNK_BYTES = MIB
SMALL_BYTES = SCANNED_MAX_BYTES
AHEAD = 32
# What intake takes for a bomb must not come out of here.
RATIO_MAX = 100
RATIO_FREE_BYTES = MIB

Chunks = Callable[[], Iterator[bytes]]


@dataclass(frozen=True)
class SourceFile:
    """A file to pack: `chunks` gives its content from the start each time it is called, of `size` bytes."""

    path: str
    size: int
    executable: bool
    chunks: Chunks


class CodeChanged(Exception):
    """A file has another size or content than a moment before."""


def pack_files(files: Iterable[SourceFile], *, top: str, to: BinaryIO) -> tuple[list[CapsuleFile], list[Problem]]:
    """Packs `files` in their order below `top` and gives what they are; with problems the zip is of no use."""
    writer = ZipWriter(to)
    packed: list[CapsuleFile] = []
    problems: list[Problem] = []
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for file, squeezing in _ahead(pool, files):
            try:
                found, rules = _add(writer, file, squeezing, f"{top}/{file.path}")
            except CodeChanged:
                message = "it changed while it was packed; try again."
                problems.append(code_problem(CodeRule.CHANGED_WHILE_READ, file.path, message))
            except OSError as error:
                message = f"it can't be read ({error.strerror}); fix its rights or ignore it."
                problems.append(code_problem(CodeRule.UNREADABLE, file.path, message))
            else:
                packed.append(found)
                problems.extend(secret_problem(rule, file.path) for rule in rules)
    writer.finish()
    return packed, problems


def secret_problem(rule: CodeRule, path: str) -> Problem:
    return code_problem(rule, path, "it looks as if it had a secret in it; take it out, or ignore the file.")


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_bomb(member: Member) -> bool:
    return member.size > RATIO_FREE_BYTES and member.size > RATIO_MAX * member.packed


def read_chunks(source: Path) -> Iterator[bytes]:
    """The content of a regular file that must not have become a link since it was found."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor has no path
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


@dataclass(frozen=True)
class _Squeezed:
    """A small file that was packed in memory."""

    member: Member
    data: bytes
    file: CapsuleFile
    secrets: list[CodeRule]


_Squeezing = Future[_Squeezed] | None


def _ahead(pool: ThreadPoolExecutor, files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, _Squeezing]]:
    """Each file in order, with small ones being packed ahead on all cores; AHEAD of them are in memory at most."""
    waiting: deque[tuple[SourceFile, _Squeezing]] = deque()
    for file in files:
        waiting.append((file, pool.submit(_squeeze, file) if file.size <= SMALL_BYTES else None))
        if len(waiting) >= AHEAD:
            yield waiting.popleft()
    yield from waiting


def _add(writer: ZipWriter, file: SourceFile, squeezing: _Squeezing, name: str) -> tuple[CapsuleFile, list[CodeRule]]:
    if squeezing is None:
        return _stream(writer, file, name)
    squeezed = squeezing.result()
    writer.add_packed(name, squeezed.member, [squeezed.data], executable=file.executable)
    return squeezed.file, squeezed.secrets


def _squeeze(file: SourceFile) -> _Squeezed:
    reading = _Reading(file)
    content = b"".join(reading.chunks())
    packer = deflater()
    data = packer.compress(content) + packer.flush()
    member = Member(DEFLATED, zlib.crc32(content), len(data), len(content))
    found = CapsuleFile(file.path, len(content), reading.sha256, file.executable)
    return _Squeezed(member, data, found, secret_rules(content))


def _stream(writer: ZipWriter, file: SourceFile, name: str) -> tuple[CapsuleFile, list[CodeRule]]:
    reading = _Reading(file)
    member = writer.add(name, reading.chunks(), executable=file.executable)
    if is_bomb(member):
        writer.undo_last()
        again = _Reading(file)
        writer.add(name, again.chunks(), executable=file.executable, method=STORED)
        if again.sha256 != reading.sha256:
            raise CodeChanged
    return CapsuleFile(file.path, member.size, reading.sha256, file.executable), []


class _Reading:
    """Hashes a file as it goes by, and holds it to its size."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._file.chunks():
            size += len(chunk)
            if size > self._file.size:
                raise CodeChanged
            self._digest.update(chunk)
            yield chunk
        if size != self._file.size:
            raise CodeChanged
