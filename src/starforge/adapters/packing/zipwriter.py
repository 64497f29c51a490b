"""Writes zips whose bytes depend on nothing but their members: dates, systems, flags and order are fixed.

The standard library's writer can't take a member over from another zip without packing it again, which is most of the
time that making a Capsule needs. Layout: PKWARE's APPNOTE 6.3, without zip64, as CODE_LIMITS are far below it.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

STORED, DEFLATED = 0, 8
LEVEL = 6
_VERSION = 20
_UTF8_NAME = 0x800
_DATE, _TIME = 0x21, 0  # 1980-01-01 00:00
_UNIX = 3
_MODES = {False: 0o100644, True: 0o100755}

LOCAL = struct.Struct("<4s5H3L2H")
CENTRAL = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
LOCAL_MARK, CENTRAL_MARK, END_MARK = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


@dataclass(frozen=True)
class Member:
    """A member's data as it lies in a zip: sizes in bytes, `packed` with `method`."""

    method: int
    crc: int
    packed: int
    size: int


class ZipWriter:
    """Adds members in the order given; `file` must be seekable and empty. Call `finish` at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._central: list[bytes] = []

    def add(self, name: str, chunks: Iterable[bytes], *, executable: bool, method: int = DEFLATED) -> Member:
        """Adds a member from its content, read once."""
        start = self._file.tell()
        self._file.write(self._local_header(name, Member(method, 0, 0, 0)))
        packer = deflater() if method == DEFLATED else None
        crc = packed = size = 0
        for chunk in chunks:
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
            packed += self._file.write(packer.compress(chunk) if packer else chunk)
        packed += self._file.write(packer.flush()) if packer else 0
        member = Member(method, crc, packed, size)
        end = self._file.tell()
        # The header is written again with the sizes, as strict readers refuse data descriptors.
        self._file.seek(start)
        self._file.write(self._local_header(name, member))
        self._file.seek(end)
        self._remember(name, member, start, executable=executable)
        return member

    def add_packed(self, name: str, member: Member, chunks: Iterable[bytes], *, executable: bool) -> None:
        """Adds a member as it was packed before; `chunks` are `member.packed` bytes."""
        start = self._file.tell()
        self._file.write(self._local_header(name, member))
        for chunk in chunks:
            self._file.write(chunk)
        self._remember(name, member, start, executable=executable)

    def undo_last(self) -> None:
        """Takes back the member added last."""
        entry = self._central.pop()
        (start,) = struct.unpack_from("<L", entry, CENTRAL.size - 4)
        self._file.seek(start)
        self._file.truncate()

    def finish(self) -> None:
        start = self._file.tell()
        size = sum(self._file.write(entry) for entry in self._central)
        count = len(self._central)
        self._file.write(END.pack(END_MARK, 0, 0, count, count, size, start, 0))

    def _local_header(self, name: str, member: Member) -> bytes:
        encoded = name.encode()
        fields = (_VERSION, _flags(name), member.method, _TIME, _DATE, member.crc, member.packed, member.size)
        return LOCAL.pack(LOCAL_MARK, *fields, len(encoded), 0) + encoded

    def _remember(self, name: str, member: Member, start: int, *, executable: bool) -> None:
        encoded = name.encode()
        fields = (_flags(name), member.method, _TIME, _DATE, member.crc, member.packed, member.size)
        rest = (len(encoded), 0, 0, 0, 0, _MODES[executable] << 16, start)
        self._central.append(CENTRAL.pack(CENTRAL_MARK, _UNIX << 8 | _VERSION, _VERSION, *fields, *rest) + encoded)


def deflater() -> "zlib._Compress":
    """The one way in which members are packed."""
    return zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)


def _flags(name: str) -> int:
    return 0 if name.isascii() else _UTF8_NAME
