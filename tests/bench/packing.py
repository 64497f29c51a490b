"""Packing 5,000 files and 200 MB: seconds, size, and the bytes that are sent when it is submitted again."""

import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from starforge.adapters.objects import DirectoryObjects
from starforge.adapters.packing.packer import CapsulePacker
from starforge.domain.capsule import code_key

FILES = 5_000
TOTAL_BYTES = 200_000_000


@dataclass
class Figures:
    pack_s: float
    open_s: float
    capsule_s: float
    zip_bytes: int
    again_pack_s: float
    sent_first: int
    sent_again: int


def make_tree(root: Path) -> None:
    """Files of source-like text and some of noise, as in a real repository with weights in it."""
    chance = random.Random(0)
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz_", k=8)) for _ in range(2_000)]
    size = TOTAL_BYTES // FILES
    for number in range(FILES):
        path = root / f"package{number % 50}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        noisy = number % 4 == 0
        path.write_bytes(chance.randbytes(size) if noisy else b" ".join(chance.choices(words, k=size // 9)))


def measure() -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        root, into, store = (Path(folder) / name for name in ("code", "packed", "objects"))
        for directory in (root, into):
            directory.mkdir()
        make_tree(root)
        objects = DirectoryObjects(store, "http://localhost")
        objects.prepare()
        packer = CapsulePacker(Path(folder) / "cache")
        packer.build_capsule(packer.pack_files([], into), b'{"command":["true"]}', into)  # builds runner.pex once
        began = time.perf_counter()
        code = packer.pack_directory(root, into)
        packed = time.perf_counter()
        sent_first = code.bytes if objects.put(code_key(code.digest), code.archive, only_new=True) else 0
        stored = time.perf_counter()
        opened = packer.open_code(code.archive)
        open_s = time.perf_counter() - stored
        began_capsule = time.perf_counter()
        packer.build_capsule(opened, b'{"command":["true"]}', into)
        capsule_s = time.perf_counter() - began_capsule
        began_again = time.perf_counter()
        again = packer.pack_directory(root, into)
        again_s = time.perf_counter() - began_again
        present = objects.size(code_key(again.digest)) is not None
        return Figures(
            packed - began, open_s, capsule_s, code.bytes, again_s, sent_first, 0 if present else again.bytes
        )


def main() -> None:
    figures = measure()
    print(
        f"packing {FILES:,} files, {TOTAL_BYTES / 1e6:.0f} MB: {figures.pack_s:.1f} s, zip {figures.zip_bytes / 1e6:.0f} MB"
    )
    print(f"verifying it on arrival: {figures.open_s:.1f} s; building the Capsule: {figures.capsule_s:.1f} s")
    print(
        f"packing it again: {figures.again_pack_s:.1f} s; bytes sent: {figures.sent_first:,}, again {figures.sent_again:,}"
    )


if __name__ == "__main__":
    main()
