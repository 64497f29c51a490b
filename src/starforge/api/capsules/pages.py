"""Files of a Capsule, read from the manifest in its zip."""

import json
import zipfile
from dataclasses import dataclass
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, RawIOBase
from typing import TYPE_CHECKING

from starforge.api.context import Context
from starforge.api.cursors import read_row_cursor, row_cursor
from starforge.api.paging import ROWS_MAX, PageArgs
from starforge.api.values import PageInfo
from starforge.domain.capsule import CapsuleFile, capsule_key
from starforge.domain.errors import CursorInvalid, NotFound
from starforge.domain.names import Digest
from starforge.domain.ports import ObjectStore, Ports

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

READ_BYTES = 256 * 1024


@dataclass(frozen=True)
class Files:
    """A page of files with their cursors, and how many match in all."""

    files: list[CapsuleFile]
    cursors: list[str]
    page_info: PageInfo
    total: int


async def capsule_files(context: Context, digest: Digest, prefix: str, page: PageArgs) -> Files:
    """Files whose path starts with `prefix`, in path order."""
    limit = page.limit(ROWS_MAX)
    after, before = _path(page.after), _path(page.before)
    matching = [
        f for f in await context.services.objects_thread(manifest, context.ports, digest) if f.path.startswith(prefix)
    ]
    within = [
        file for file in matching if (after is None or file.path > after) and (before is None or file.path < before)
    ]
    chosen = within[:limit] if page.first is not None else within[-limit:]
    cursors = [row_cursor((file.path,)) for file in chosen]
    info = PageInfo(
        has_next_page=bool(chosen) and chosen[-1] != matching[-1],
        has_previous_page=bool(chosen) and chosen[0] != matching[0],
        start_cursor=cursors[0] if cursors else None,
        end_cursor=cursors[-1] if cursors else None,
    )
    return Files(chosen, cursors, info, len(matching))


def _path(cursor: str | None) -> str | None:
    key = read_row_cursor(cursor)
    if key is None:
        return None
    if len(key) != 1 or not isinstance(key[0], str):
        raise CursorInvalid("This is not the cursor of a file; take one from an edge.")
    return key[0]


def manifest(ports: Ports, digest: Digest) -> list[CapsuleFile]:
    """Every file of a stored Capsule, in path order; ObjectStoreUnavailable or NotFound if it can't be read.

    Of the zip only its directory and the manifest are read.
    """
    stored = BufferedReader(_Stored(ports.objects, capsule_key(digest)), READ_BYTES)
    with zipfile.ZipFile(stored) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/.starforge/manifest.json"))
        rows = json.loads(archive.read(name))["files"]
    files = [CapsuleFile(row["path"], row["size"], row["sha256"], row["executable"]) for row in rows]
    return sorted(files, key=lambda file: file.path)


class _Stored(RawIOBase):
    """An object as a file that can be read anywhere."""

    def __init__(self, objects: ObjectStore, key: str) -> None:
        super().__init__()
        size = objects.size(key)
        if size is None:
            raise NotFound(f"The object {key} is not there any more.")
        self._objects, self._key, self._size, self._at = objects, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        start = {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: "Buffer") -> int:
        into = memoryview(buffer)
        length = min(len(into), self._size - self._at)
        if length <= 0:
            return 0
        found = self._objects.read(self._key, start=self._at, length=length)
        into[: len(found)] = found
        self._at += len(found)
        return len(found)
