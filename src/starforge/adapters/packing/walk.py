"""Walks a folder of code and finds what goes into a Capsule, without opening anything that is ignored."""

import os
import stat
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from starforge.adapters.packing.floor import floor_rule
from starforge.adapters.packing.ignore import IgnoreRules
from starforge.domain.capsule import CODE_LIMITS, CodeLimits, CodeRule, code_problem, size_problems
from starforge.domain.errors import Problem


@dataclass(frozen=True)
class FoundFile:
    """A file to take: `path` in the Capsule, `source` where its bytes are (no link), `size` in bytes."""

    path: str
    source: Path
    size: int
    executable: bool


@dataclass(frozen=True)
class LeftOut:
    """A file or folder that does not go, and what says so: a name of the floor, or an ignore file."""

    path: str
    because: str


@dataclass
class Walk:
    """What a walk found; `problems` are what refuses the folder as it is."""

    files: list[FoundFile] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def walk_code(root: Path, *, limits: CodeLimits = CODE_LIMITS, but: Path | None = None) -> Walk:
    """The files below `root` but for that one, in path order. Stops early when there are more than the limit."""
    walker = _Walker(root.resolve(strict=True), limits, but and but.resolve(strict=True))
    walker.folder(walker.root, "", IgnoreRules(), (walker.root,))
    walk = walker.walk
    walk.files.sort(key=lambda file: file.path.encode(errors="surrogateescape"))
    return walk


class _Walker:
    def __init__(self, root: Path, limits: CodeLimits, but: Path | None) -> None:
        self.root = root
        self._but = but
        self.walk = Walk()
        self._limits = limits

    def folder(self, real: Path, path: str, rules: IgnoreRules, above: tuple[Path, ...]) -> None:
        """One folder at `path` ("" or ending in a slash); `above` are the real folders on the way, itself included."""
        try:
            rules = rules.entering(real, path)
            entries = sorted(os.scandir(real), key=lambda entry: entry.name)
        except OSError as error:
            self._refuse(
                CodeRule.UNREADABLE, path, f"it can't be read ({error.strerror}); fix its rights or ignore it."
            )
            return
        for entry in entries:
            if self._too_many():
                return
            self._entry(entry, path, rules, above)

    def _entry(self, entry: os.DirEntry[str], path: str, rules: IgnoreRules, above: tuple[Path, ...]) -> None:
        shown = f"{path}{entry.name}"
        # To git a link is never a folder, so `name/` does not match it.
        is_folder = entry.is_dir(follow_symlinks=False)
        leads_to_folder = is_folder or os.path.isdir(entry.path)  # noqa: PTH112 - Path.is_dir raises where it may not look
        because = floor_rule(entry.name, is_folder=leads_to_folder) or rules.ignoring(shown + "/" * is_folder)
        if because:
            self.walk.left_out.append(LeftOut(shown, because))
            return
        real = self._real(entry, shown)
        if real is not None and real == self._but:
            self.walk.left_out.append(LeftOut(shown, "it says what to run, and is no part of it"))
        elif real is not None:
            self._take(real, unicodedata.normalize("NFC", shown), rules, above)

    def _take(self, real: Path, path: str, rules: IgnoreRules, above: tuple[Path, ...]) -> None:
        found = real.lstat()
        if stat.S_ISREG(found.st_mode):
            executable = bool(found.st_mode & stat.S_IXUSR)
            self.walk.files.append(FoundFile(path, real, found.st_size, executable))
        elif not stat.S_ISDIR(found.st_mode):
            self._refuse(CodeRule.SPECIAL_FILE, path, "it is a device, pipe or socket; remove or ignore it.")
        elif real in above:
            self._refuse(CodeRule.LINK_LOOP, path, "it links to a folder that it is in; remove or ignore it.")
        else:
            self.folder(real, f"{path}/", rules, (*above, real))

    def _real(self, entry: os.DirEntry[str], path: str) -> Path | None:
        """Where the bytes of an entry are: itself, or what it links to within the root."""
        if not entry.is_symlink():
            return Path(entry.path)
        try:
            real = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            self._refuse(CodeRule.LINK_BROKEN, path, "it links to nothing; remove or ignore it.")
            return None
        if not real.is_relative_to(self.root):
            self._refuse(CodeRule.LINK_LEAVES_ROOT, path, "it links to outside of the code's folder; copy it in.")
            return None
        if any(_floor_rules(real, self.root)):
            self._refuse(CodeRule.LINK_TO_EXCLUDED, path, "it links to what is never taken; remove or ignore it.")
            return None
        return real

    def _too_many(self) -> bool:
        if len(self.walk.files) <= self._limits.files:
            return False
        if not any(problem.rule == CodeRule.TOO_MANY_FILES for problem in self.walk.problems):
            self.walk.problems.extend(size_problems(count=len(self.walk.files), size=0, limits=self._limits))
        return True

    def _refuse(self, rule: CodeRule, path: str, message: str) -> None:
        self.walk.problems.append(code_problem(rule, path, message))


def _floor_rules(real: Path, root: Path) -> Iterator[str]:
    steps = real.relative_to(root).parts
    for number, step in enumerate(steps):
        rule = floor_rule(step, is_folder=number < len(steps) - 1 or real.is_dir())
        if rule:
            yield rule
