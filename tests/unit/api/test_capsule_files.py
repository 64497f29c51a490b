"""The files of a Capsule, read from its zip without reading all of it."""

import io
import json
import random
import zipfile
from typing import cast

import pytest

from starforge.api.capsules.pages import manifest
from starforge.domain.errors import NotFound
from starforge.domain.names import Digest
from starforge.domain.ports import Ports

DIGEST = Digest("d" * 64)
LARGE = 4_000_000


class Objects:
    """An object store with one object, which counts the bytes that it gives."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content
        self.given = 0

    def size(self, key: str) -> int | None:
        assert key == f"capsules/{DIGEST}.zip"
        return None if self.content is None else len(self.content)

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        assert self.content is not None
        assert length is not None
        part = self.content[start : start + length]
        self.given += len(part)
        return part


def ports(objects: Objects) -> Ports:
    return cast("Ports", type("OnlyObjects", (), {"objects": objects})())


def a_zip(*paths: str) -> bytes:
    rows = [{"executable": False, "path": path, "sha256": "0" * 64, "size": 1} for path in paths]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("capsule/model.bin", random.Random(1).randbytes(LARGE))
        archive.writestr("capsule/.starforge/manifest.json", json.dumps({"files": rows}))
        archive.writestr("capsule/data.bin", random.Random(2).randbytes(LARGE))
    return target.getvalue()


def test_files_come_in_path_order_and_little_is_read() -> None:
    objects = Objects(a_zip("train.py", "Z.py", "lib/é.py", "lib/a.py"))
    assert [file.path for file in manifest(ports(objects), DIGEST)] == ["Z.py", "lib/a.py", "lib/é.py", "train.py"]
    assert objects.given < LARGE / 2


def test_a_zip_that_is_gone() -> None:
    with pytest.raises(NotFound):
        manifest(ports(Objects(None)), DIGEST)
