"""What a walk takes, leaves out and refuses."""

import os
from pathlib import Path

import pytest

from starforge.adapters.packing.walk import walk_code
from starforge.domain.capsule import CodeLimits, CodeRule


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def refusals(root: Path) -> list[tuple[str | None, str | None]]:
    return [(problem.rule, problem.file) for problem in walk_code(root).problems]


def test_files_in_byte_order_with_size_and_mode(tmp_path: Path) -> None:
    write(tmp_path, "b/c.py", "b.py", "é", "run.sh")
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "empty").mkdir()
    found = [(file.path, file.size, file.executable) for file in walk_code(tmp_path).files]
    assert found == [("b.py", 4, False), ("b/c.py", 6, False), ("run.sh", 6, True), ("é", 2, False)]


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".hg/x",
        ".svn/x",
        ".venv/bin/python",
        "pkg/venv/x",
        "pkg/__pycache__/x.pyc",
        ".mypy_cache/x",
        ".ruff_cache/x",
        ".pytest_cache/x",
        "node_modules/x",
        ".env",
        "conf/.env.local",
        "key.pem",
        "KEY.PEM",
        "id_rsa",
        "id_rsa.pub",
        "id_ed25519_work",
        ".aws/credentials",
        ".ssh/config",
        ".netrc",
        "kubeconfig",
        ".DS_Store",
        "wandb/run",
        "outputs/1.ckpt",
    ],
)
def test_the_floor_holds_whatever_the_ignore_files_say(tmp_path: Path, path: str) -> None:
    write(tmp_path, path, "train.py")
    (tmp_path / ".starforgeignore").write_text("!*\n!**\n.starforgeignore\n")
    walk = walk_code(tmp_path)
    assert [file.path for file in walk.files] == ["train.py"]
    assert walk.problems == []


def test_names_that_only_look_like_the_floor(tmp_path: Path) -> None:
    write(tmp_path, "environment.yml", "outputs.py", "venv.py", "pkg/wandb", "pem")
    assert len(walk_code(tmp_path).files) == 5


def test_links_inside_are_followed_as_files(tmp_path: Path) -> None:
    write(tmp_path, "shared/a.py", "main.py")
    (tmp_path / "entry.py").symlink_to("main.py")
    (tmp_path / "lib").symlink_to("shared")
    walk = walk_code(tmp_path)
    assert [file.path for file in walk.files] == ["entry.py", "lib/a.py", "main.py", "shared/a.py"]
    assert walk.files[0].source == tmp_path / "main.py"
    assert walk.problems == []


def test_links_that_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "code"
    write(tmp_path, "outside/secret", "code/pkg/a.py", "code/.env")
    for name, target in {
        "out": "../outside/secret",
        "out_folder": "../outside",
        "absolute": "/etc/passwd",
        "broken": "nothing",
        "self": "self",
        "env": ".env",
        "pkg/loop": "..",
    }.items():
        (root / name).symlink_to(target)
    assert set(refusals(root)) == {
        (CodeRule.LINK_LEAVES_ROOT, "out"),
        (CodeRule.LINK_LEAVES_ROOT, "out_folder"),
        (CodeRule.LINK_LEAVES_ROOT, "absolute"),
        (CodeRule.LINK_BROKEN, "broken"),
        (CodeRule.LINK_BROKEN, "self"),
        (CodeRule.LINK_TO_EXCLUDED, "env"),
        (CodeRule.LINK_LOOP, "pkg/loop"),
    }


def test_ignored_links_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to("/etc")
    (tmp_path / ".gitignore").write_text("data\n")
    assert refusals(tmp_path) == []


def test_pipes_and_sockets_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusals(tmp_path) == [(CodeRule.SPECIAL_FILE, "pipe")]


def test_a_name_that_is_no_unicode_is_found_and_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff")).touch()
    assert [file.path for file in walk_code(tmp_path).files] == ["a\udcff"]


def test_decomposed_names_are_composed(tmp_path: Path) -> None:
    write(tmp_path, "e\u0301.py")
    assert [file.path for file in walk_code(tmp_path).files] == ["\u00e9.py"]


def test_stops_when_there_are_too_many(tmp_path: Path) -> None:
    write(tmp_path, *(f"{folder}/{number}" for folder in "abc" for number in range(5)))
    walk = walk_code(tmp_path, limits=CodeLimits(files=7, bytes=10**6))
    assert len(walk.files) == 8
    assert [problem.rule for problem in walk.problems] == [CodeRule.TOO_MANY_FILES]


def test_one_file_can_be_left_out_under_whatever_name_it_is_found(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "jobs.yaml", "b/jobs.yaml")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "jobs.yaml")
    walk = walk_code(tmp_path, but=tmp_path / "b" / ".." / "jobs.yaml")
    assert [file.path for file in walk.files] == ["a.py", "b/jobs.yaml"]
    assert [one.path for one in walk.left_out] == ["jobs.yaml", "link.yaml"]
