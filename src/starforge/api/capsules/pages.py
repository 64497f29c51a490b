"""Files of a Capsule, read from the manifest in its zip."""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

from starforge.api.context import Context
from starforge.api.cursors import read_row_cursor, row_cursor
from starforge.api.paging import ROWS_MAX, PageArgs
from starforge.api.values import PageInfo
from starforge.domain.capsule import CapsuleFile, capsule_key
from starforge.domain.names import Digest
from starforge.domain.ports import Ports


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
    after, before = read_row_cursor(page.after), read_row_cursor(page.before)
    matching = [f for f in await context.services.thread(manifest, context.ports, digest) if f.path.startswith(prefix)]
    within = [
        file
        for file in matching
        if (after is None or file.path > str(after[0])) and (before is None or file.path < str(before[0]))
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


def manifest(ports: Ports, digest: Digest) -> list[CapsuleFile]:
    """Every file of a stored Capsule, in path order; ObjectStoreUnavailable or NotFound if it can't be read."""
    with ports.scratch() as scratch:
        path = Path(scratch) / "capsule.zip"
        ports.objects.fetch(capsule_key(digest), path)
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/.starforge/manifest.json"))
            rows = json.loads(archive.read(name))["files"]
    files = [CapsuleFile(row["path"], row["size"], row["sha256"], row["executable"]) for row in rows]
    return sorted(files, key=lambda file: file.path)
