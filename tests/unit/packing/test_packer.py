"""CapsulePacker without pex: code from folders, requests, uploads. Capsules: tests/integration/test_runner_pex.py."""

import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from starforge.adapters.packing.packer import CapsulePacker
from starforge.domain.capsule import MIB, CodeRule, InlineFile, PackedCode, files_digest
from starforge.domain.errors import CodeRefused, Defect


@pytest.fixture
def packer(tmp_path: Path) -> CapsulePacker:
    return CapsulePacker(tmp_path / "cache")


def tree(root: Path) -> Path:
    for path, text in {"train.py": "import lib\n", "lib/é.py": "x = 1\n", "run.sh": "#!/bin/sh\n", "empty": ""}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "run.sh").chmod(0o755)
    return root


def rules(error: pytest.ExceptionInfo[CodeRefused]) -> list[str | None]:
    return [problem.rule for problem in error.value.problems]


def test_equal_trees_give_equal_bytes_whatever_their_dates_and_rights(tmp_path: Path, packer: CapsulePacker) -> None:
    first = packer.pack_directory(tree(tmp_path / "one"), tmp_path / "out1")
    umask = os.umask(0o077)
    try:
        root = tree(tmp_path / "elsewhere" / "two")
        for path in root.rglob("*"):
            os.utime(path, (1, 1))
        (root / "lib/__pycache__").mkdir()
        (root / "lib/__pycache__/x.pyc").write_bytes(b"1")
        second = packer.pack_directory(root, tmp_path / "out2")
    finally:
        os.umask(umask)
    assert first.archive.read_bytes() == second.archive.read_bytes()
    assert replace(first, archive=second.archive) == second
    assert first.archive.name == f"code-{first.digest}.zip"


def test_code_says_what_is_in_it(tmp_path: Path, packer: CapsulePacker) -> None:
    code = packer.pack_directory(tree(tmp_path / "code"), tmp_path / "out")
    assert [(file.path, file.size, file.executable) for file in code.files] == [
        ("empty", 0, False),
        ("lib/é.py", 6, False),
        ("run.sh", 10, True),
        ("train.py", 11, False),
    ]
    assert code.digest == files_digest(code.files)
    assert [path.name for path in code.archive.parent.iterdir()] == [code.archive.name]
    assert packer.open_code(code.archive) == code


def test_a_folder_and_a_request_with_the_same_files_are_the_same_code(tmp_path: Path, packer: CapsulePacker) -> None:
    inline = [
        InlineFile("train.py", "import lib\n", executable=False),
        InlineFile("run.sh", "#!/bin/sh\n", executable=True),
        InlineFile("lib/é.py", "x = 1\n", executable=False),
        InlineFile("empty", "", executable=False),
    ]
    from_request = packer.pack_files(inline, tmp_path / "a")
    from_folder = packer.pack_directory(tree(tmp_path / "code"), tmp_path / "b")
    assert from_request.archive.read_bytes() == from_folder.archive.read_bytes()
    assert from_request.digest == from_folder.digest


def test_no_files_are_code_too(tmp_path: Path, packer: CapsulePacker) -> None:
    code = packer.pack_files([], tmp_path)
    assert code.files == ()
    assert packer.open_code(code.archive) == code


def test_every_problem_of_a_request(tmp_path: Path, packer: CapsulePacker) -> None:
    files = [InlineFile(path, "x", executable=False) for path in ("../x", "A", "a", "starforge.py")]
    with pytest.raises(CodeRefused) as raised:
        packer.pack_files([*files, InlineFile("big", "x" * MIB, executable=False)], tmp_path)
    assert set(rules(raised)) == {
        CodeRule.PARENT_PATH,
        CodeRule.CASE_COLLISION,
        CodeRule.RESERVED_NAME,
        CodeRule.TOO_MANY_BYTES,
    }
    assert list(tmp_path.iterdir()) == []


def test_every_problem_of_a_folder(tmp_path: Path, packer: CapsulePacker) -> None:
    root = tree(tmp_path / "code")
    (root / "starforge.py").write_text("")
    (root / "Train.py").write_text("")
    (root / os.fsdecode(b"bad\xff")).write_text("")
    (root / "out").symlink_to("/etc/passwd")
    with pytest.raises(CodeRefused) as raised:
        packer.pack_directory(root, tmp_path / "out")
    assert sorted(filter(None, rules(raised))) == [
        CodeRule.CASE_COLLISION,
        CodeRule.LINK_LEAVES_ROOT,
        CodeRule.NOT_UNICODE,
        CodeRule.RESERVED_NAME,
    ]


def test_a_secret_leaves_nothing_behind(tmp_path: Path, packer: CapsulePacker) -> None:
    root = tree(tmp_path / "code")
    (root / "conf.py").write_text("KEY = 'AKIA" + "ABCDEFGHIJKLMNOP'\n")
    with pytest.raises(CodeRefused) as raised:
        packer.pack_directory(root, tmp_path / "out")
    assert [(problem.code, problem.rule, problem.file) for problem in raised.value.problems] == [
        ("SECRET_FOUND", CodeRule.AWS_KEY, "conf.py")
    ]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_that_can_not_be_encoded_is_refused(tmp_path: Path, packer: CapsulePacker) -> None:
    with pytest.raises(CodeRefused) as raised:
        packer.pack_files([InlineFile("a\ud800", "x", executable=False)], tmp_path)
    assert rules(raised) == [CodeRule.NOT_UNICODE]


def test_code_that_was_changed_after_it_was_verified(tmp_path: Path, packer: CapsulePacker) -> None:
    code = packer.pack_directory(tree(tmp_path / "code"), tmp_path / "out")
    code.archive.write_bytes(code.archive.read_bytes() + b"x")
    with pytest.raises(Defect, match="changed after it was verified"):
        packer.build_capsule(code, b"{}", tmp_path / "out")


def test_other_zippers_are_taken(tmp_path: Path, packer: CapsulePacker) -> None:
    code = packer.pack_directory(tree(tmp_path / "code"), tmp_path / "out")
    upload = tmp_path / "upload.zip"
    with zipfile.ZipFile(code.archive) as ours, zipfile.ZipFile(upload, "w", zipfile.ZIP_STORED) as theirs:
        for info in reversed(ours.infolist()):
            theirs.writestr(info, ours.read(info), zipfile.ZIP_STORED)
    opened: PackedCode = packer.open_code(upload)
    assert (opened.digest, opened.files) == (code.digest, code.files)
    assert opened.transport_sha256 != code.transport_sha256
