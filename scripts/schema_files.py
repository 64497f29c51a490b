"""The committed files that come from the schema: written, and compared with what the code says."""

import difflib
from collections.abc import Mapping
from pathlib import Path

REFERENCE = "docs/reference"


def write(root: Path, written: Mapping[str, str]) -> None:
    """Each text into its file below `root`; pages of the reference that are not among them go."""
    for name in stale_pages(root, written):
        (root / name).unlink()
    for name, text in written.items():
        (root / name).write_text(text)


def differences(root: Path, written: Mapping[str, str]) -> list[str]:
    """Lines that say where the files differ from the texts."""
    lines = [line for name, text in written.items() for line in difference(root, name, text)]
    lines += [f"{name} tells of nothing that there is." for name in stale_pages(root, written)]
    return [*lines, "Run `make schema` and look at the difference."] if lines else []


def difference(root: Path, name: str, new: str) -> list[str]:
    path = root / name
    old = path.read_text() if path.exists() else ""
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), name, "the code", lineterm="", n=1))


def stale_pages(root: Path, written: Mapping[str, str]) -> list[str]:
    there = {f"{REFERENCE}/{path.name}" for path in (root / REFERENCE).glob("*.md")}
    return sorted(there - written.keys())
