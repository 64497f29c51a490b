"""Which entries the ignore files of a tree keep out, by git's rules, for a walk that prunes ignored folders.

`.starforgeignore` has the same syntax and wins over every `.gitignore`, so that `!` in it takes what git ignores.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from starforge.adapters.packing.pattern import verdict

GITIGNORE = ".gitignore"
STARFORGEIGNORE = ".starforgeignore"


@dataclass(frozen=True)
class IgnoreFile:
    """The rules of one ignore file; `folder` is its folder below the root, "" or ending in a slash."""

    folder: str
    name: str
    spec: GitIgnoreSpec

    def verdict(self, path: str) -> bool | None:
        """True: ignored; False: taken by `!`; None: says nothing about it. A folder's path ends in a slash."""
        return verdict(self.spec, path[len(self.folder) :])


@dataclass(frozen=True)
class IgnoreRules:
    """The ignore files that hold in a folder, the outermost first."""

    git: tuple[IgnoreFile, ...] = ()
    starforge: tuple[IgnoreFile, ...] = ()

    def entering(self, folder: Path, path: str) -> "IgnoreRules":
        """The rules within `folder`, which is at `path` below the root ("" or ending in a slash)."""
        git, starforge = _read(folder, path, GITIGNORE), _read(folder, path, STARFORGEIGNORE)
        return IgnoreRules(self.git + git, self.starforge + starforge)

    def ignoring(self, path: str) -> str | None:
        """The ignore file that keeps `path` out, or None. The innermost file that says anything decides."""
        for layer in (self.starforge, self.git):
            for file in reversed(layer):
                ignored = file.verdict(path)
                if ignored is not None:
                    return f"{file.folder}{file.name}" if ignored else None
        return None


def _read(folder: Path, path: str, name: str) -> tuple[IgnoreFile, ...]:
    file = folder / name
    if file.is_symlink() or not file.is_file():
        return ()
    lines = file.read_bytes().decode("utf-8-sig", "surrogateescape").split("\n")
    spec = GitIgnoreSpec.from_lines([_as_pathspec_reads(line) for line in lines], backend="simple")
    return (IgnoreFile(path, name, spec),)


def _as_pathspec_reads(line: str) -> str:
    """`name/**/` is about every folder below `name`; pathspec takes it for `name/`, unless it is written in full."""
    return re.sub(r"/\*\*/\s*$", "/**/*/", line.removesuffix("\r"))
