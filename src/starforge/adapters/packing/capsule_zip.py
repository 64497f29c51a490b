"""Writes the zip of a Capsule: the members of verified code, taken over as they are packed, and ours."""

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starforge.adapters.packing.zipreader import Entry, code_path, packed_chunks, read_directory
from starforge.adapters.packing.zipwriter import ZipWriter
from starforge.domain.capsule import CAPSULE_TOP, CapsuleFile, PackedCode


@dataclass(frozen=True)
class CapsulePart:
    """A file of ours in a Capsule."""

    path: str
    content: bytes

    @property
    def file(self) -> CapsuleFile:
        return CapsuleFile(self.path, len(self.content), hashlib.sha256(self.content).hexdigest())


def write_capsule(code: PackedCode, ours: Sequence[CapsulePart], archive: Path) -> None:
    """Every member in path order below the top folder; `archive` appears whole or not at all."""
    with (
        tempfile.TemporaryDirectory(dir=archive.parent, prefix=".capsule-") as scratch,
        code.archive.open("rb") as packed,
    ):
        fresh = Path(scratch) / archive.name
        with fresh.open("w+b") as file:
            _write(packed, ours, ZipWriter(file))
        fresh.replace(archive)


def _write(packed: BinaryIO, ours: Sequence[CapsulePart], writer: ZipWriter) -> None:
    members: dict[str, Entry | CapsulePart] = {part.path: part for part in ours}
    entries, _ = read_directory(packed)  # without problems, as the code was verified
    members |= {code_path(entry.name): entry for entry in entries if not entry.is_folder}
    for path in sorted(members, key=str.encode):
        member, name = members[path], f"{CAPSULE_TOP}/{path}"
        if isinstance(member, CapsulePart):
            writer.add(name, [member.content], executable=False)
        else:
            writer.add_packed(name, member.member, packed_chunks(packed, member), executable=member.executable)
    writer.finish()
