"""Whether the working directory holds the Capsule as it was made."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import Any

MANIFEST = ".starforge/manifest.json"
_CHUNK = 1024 * 1024


def capsule_faults(*, expected_digest: str | None = None) -> list[str]:
    """What is wrong, one sentence each. Files that the manifest does not list, such as Ray's own, are ignored."""
    try:
        with open(MANIFEST, "rb") as file:
            text = file.read()
        rows = json.loads(text)["files"]
        listed = [(str(row["path"]), int(row["size"]), str(row["sha256"]), bool(row["executable"])) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{MANIFEST} can't be read ({type(error).__name__}: {error})"]
    if expected_digest is not None and hashlib.sha256(text).hexdigest() != expected_digest:
        return [f"{MANIFEST} is that of another Capsule"]
    faults = [_fault(*row) for row in listed]
    return [fault for fault in faults if fault]


def _fault(path: str, size: int, sha256: str, executable: bool) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        return f"{path} leads out of the Capsule"
    try:
        file = os.open(path.encode(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return f"{path} can't be read ({error.strerror})"
    with open(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return f"{path} is no regular file"
        if found.st_size != size:
            return f"{path} has {found.st_size} bytes and not {size}"
        if executable and not found.st_mode & stat.S_IXUSR:
            return f"{path} is not executable"
        return "" if _sha256(opened) == sha256 else f"{path} has another content"


def _sha256(file: Any) -> str:
    digest = hashlib.sha256()
    for chunk in iter(lambda: file.read(_CHUNK), b""):
        digest.update(chunk)
    return digest.hexdigest()
