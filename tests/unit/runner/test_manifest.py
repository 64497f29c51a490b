"""The runner's check of its working directory."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from starforge.domain.capsule import CapsuleFile, manifest_bytes
from starforge.runner.manifest import capsule_faults


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    contents = {"train.py": b"print(1)\n", "data/é.bin": b"\0" * 3_000_000, "run.sh": b"#!/bin/sh\n"}
    files = []
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
        files.append(CapsuleFile(path, len(content), hashlib.sha256(content).hexdigest(), path.endswith(".sh")))
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / ".starforge").mkdir()
    (tmp_path / ".starforge/manifest.json").write_bytes(manifest_bytes(files))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_whole_capsule_with_other_files_beside_it(folder: Path) -> None:
    (folder / "ray_put_this_here").write_text("x")
    assert capsule_faults() == []


def to_link(folder: Path) -> None:
    (folder / "train.py").rename(folder / "real.py")
    (folder / "train.py").symlink_to("real.py")


def to_fifo(folder: Path) -> None:
    (folder / "train.py").unlink()
    os.mkfifo(folder / "train.py")


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda folder: (folder / "train.py").unlink(), "train.py can't be read (No such file or directory)"),
        (lambda folder: (folder / "train.py").write_text("print(2)\n"), "train.py has another content"),
        (lambda folder: (folder / "train.py").write_text(""), "train.py has 0 bytes and not 9"),
        (lambda folder: (folder / "run.sh").chmod(0o644), "run.sh is not executable"),
        (to_link, "train.py can't be read"),
        (to_fifo, "train.py is no regular file"),
    ],
)
def test_damage_is_told(folder: Path, damage: Callable[[Path], object], fault: str) -> None:
    damage(folder)
    (found,) = capsule_faults()
    assert found.startswith(fault)


def test_each_fault_is_told(folder: Path) -> None:
    (folder / "train.py").unlink()
    (folder / "data/é.bin").write_bytes(b"")
    assert len(capsule_faults()) == 2


@pytest.mark.parametrize("text", ["", "[]", '{"files":[{}]}', '{"files":3}'])
def test_a_manifest_that_is_none(folder: Path, text: str) -> None:
    (folder / ".starforge/manifest.json").write_text(text)
    (found,) = capsule_faults()
    assert found.startswith(".starforge/manifest.json can't be read")


def test_a_manifest_that_leads_out(folder: Path) -> None:
    escape = CapsuleFile("../x", 1, "0" * 64)
    (folder / ".starforge/manifest.json").write_bytes(manifest_bytes([escape]))
    assert capsule_faults() == ["../x leads out of the Capsule"]


def test_the_digest_of_the_manifest_if_it_was_told(folder: Path) -> None:
    digest = hashlib.sha256((folder / ".starforge/manifest.json").read_bytes()).hexdigest()
    assert capsule_faults(expected_digest=digest) == []
    assert capsule_faults(expected_digest="0" * 64) == [".starforge/manifest.json is that of another Capsule"]
