"""The ignore rules, with git itself as the oracle."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.adapters.packing.walk import walk_code

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

NAMES = ("a", "b", "ab", "a.py", "b.log", "Data")
PATTERNS = (
    "a",
    "/a",
    "a/",
    "/a/",
    "!a",
    "!a/",
    "!/a/",
    "*",
    "!*/",
    "*/",
    "!*.py",
    "*.log",
    "!b.log",
    "a/*",
    "!a/b",
    "a/**",
    "!a/**/b.log",
    "a/**/",
    "**/",
    "!**/",
    "b/a/",
    "**/b",
    "**/b/",
    "a/**/b",
    "/*",
    "!/b",
    "[ab]",
    "[!a]",
    "a?",
    "data",
    "# a",
    "\\#a",
    "\\!a",
    "",
    "a ",
    "a\\ ",
    "/",
    "**",
    "b/*.py",
    "!b/a.py",
    "a//b",
    "[",
)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
trees = st.lists(paths, min_size=1, max_size=8)
ignore_files = st.dictionaries(
    st.sampled_from(["", "a/", "b/", "a/b/"]), st.lists(st.sampled_from(PATTERNS), max_size=5), max_size=3
)


def grow(root: Path, tree: list[str]) -> None:
    for path in tree:
        file = root / path
        if any(parent.is_file() for parent in file.parents) or file.is_dir():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def git(root: Path, *words: str, given: bytes = b"") -> set[str]:
    """What git prints, NUL after each, with nothing of this machine's settings."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": "/"}
    command = ["git", "-C", str(root), "-c", "core.excludesFile=", *words]
    done = subprocess.run(command, env=env, input=given, check=False, capture_output=True, timeout=60)
    assert done.stderr == b""
    return {path.decode() for path in done.stdout.split(b"\0") if path}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    git(root, "init", "-q")
    (root / ".git/info/exclude").write_text("")
    return root


def empty(root: Path) -> None:
    for entry in root.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@settings(max_examples=25, deadline=None)
@given(trees, ignore_files)
def test_takes_what_git_takes(repository: Path, tree: list[str], ignores: dict[str, list[str]]) -> None:
    root = repository
    empty(root)
    grow(root, tree)
    for folder, lines in ignores.items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_text("\n".join(lines))
    walk = walk_code(root)
    assert {file.path for file in walk.files} == git(root, "ls-files", "-z", "--others", "--exclude-standard")
    left_out = {left.path for left in walk.left_out} - {".git"}
    asked = "\0".join(left_out).encode()
    assert left_out == git(root, "check-ignore", "--no-index", "-z", "--stdin", given=asked)


def test_starforgeignore_wins_over_every_gitignore(tmp_path: Path) -> None:
    grow(tmp_path, ["data/model.bin", "data/raw/x", "train.py", "notes.md"])
    (tmp_path / ".gitignore").write_text("data/\n")
    (tmp_path / "data/.gitignore").write_text("*\n")
    (tmp_path / ".starforgeignore").write_text("*.md\n.*ignore\n!/data/\n!/data/*.bin\n")
    walk = walk_code(tmp_path)
    assert [file.path for file in walk.files] == ["data/model.bin", "train.py"]
    because = {left.path: left.because for left in walk.left_out}
    assert because["notes.md"] == ".starforgeignore"
    assert because["data/raw"] == "data/.gitignore"


def test_an_ignored_folder_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0)
    (tmp_path / ".gitignore").write_text("data\n")
    try:
        assert walk_code(tmp_path).problems == []
    finally:
        (tmp_path / "data").chmod(0o755)


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    grow(tmp_path, ["a.log", "b.log", "c"])
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfa.log\r\nb.log\r\n")
    assert [file.path for file in walk_code(tmp_path).files] == [".gitignore", "c"]
