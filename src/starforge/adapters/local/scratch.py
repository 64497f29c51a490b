"""The scratch directory of a run: Ray's session, the Capsule and the code, all of which go when the run ends."""

import os
import shutil
import tempfile
from pathlib import Path

# Ray's longest socket path, with the largest pid; Linux takes 107 bytes.
_RAY_TAIL = len("/r/session_2026-01-01_00-00-00_000000_4194304/sockets/plasma_store")
_SOCKET_MAX = 107
_UID_CHARACTERS = 10


def scratch_path(uid: str, base: Path | None = None) -> Path:
    """Where the scratch directory of a run will be; ValueError if Ray's sockets would have too long a path there."""
    path = (base or Path(tempfile.gettempdir())) / f"sf-{uid[:_UID_CHARACTERS]}"
    longest = len(bytes(path)) + _RAY_TAIL
    if longest > _SOCKET_MAX:
        room = _SOCKET_MAX - _RAY_TAIL
        raise ValueError(f"{path} is too long for Ray's sockets: at most {room} bytes; set TMPDIR to a shorter path")
    return path


def make_scratch(path: Path) -> None:
    """Made anew and private; FileExistsError if somebody was faster, as it would not be ours then."""
    path.mkdir(mode=0o700)


def ray_directory(scratch: Path) -> Path:
    return scratch / "r"


def remove_scratch(path: Path) -> None:
    """Removes what is there; a directory that the user's code made unwritable is opened first."""
    for folder, _names, _files in os.walk(path):
        Path(folder).chmod(0o700)
    if path.is_dir():
        shutil.rmtree(path)
