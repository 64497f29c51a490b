"""Digests and path rules of code (design §6)."""

import hashlib
import json
import unicodedata
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.capsule import (
    CODE_LIMITS,
    INLINE_LIMITS,
    MIB,
    CapsuleFile,
    CodeLimits,
    CodeRule,
    code_problem,
    code_problems,
    collision_problems,
    files_digest,
    manifest_bytes,
    path_problems,
)
from starforge.domain.errors import Problem

SHA = hashlib.sha256(b"x").hexdigest()
names = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="/\\:"), min_size=1, max_size=12
)
good_paths = (
    st.lists(names, min_size=1, max_size=4)
    .map(lambda steps: unicodedata.normalize("NFC", "/".join(steps)))
    .filter(lambda path: not path_problems(path))
)
shas = st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest())
capsule_files = st.builds(CapsuleFile, good_paths, st.integers(0, 10**9), shas, st.booleans())
trees = st.lists(capsule_files, unique_by=lambda file: file.path, max_size=6)


def rules(problems: list[Problem]) -> set[str | None]:
    return {problem.rule for problem in problems}


@given(trees, st.randoms(use_true_random=False))
def test_digest_does_not_depend_on_order(files: list[CapsuleFile], random: Random) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)
    assert files_digest(shuffled) == files_digest(files)


@given(trees.filter(bool), st.data())
def test_digest_changes_with_each_property(files: list[CapsuleFile], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(files) - 1))
    file = files[at]
    others = [
        replace(file, size=file.size + 1),
        replace(file, executable=not file.executable),
        replace(file, sha256=hashlib.sha256(file.sha256.encode()).hexdigest()),
        replace(file, path=f"{file.path}x"),
    ]
    digests = {files_digest([*files[:at], other, *files[at + 1 :]]) for other in [file, *others]}
    assert len(digests) == 5
    assert files_digest(files[:at] + files[at + 1 :]) not in digests


def test_manifest_is_canonical() -> None:
    files = [CapsuleFile("é.py", 1, SHA, True), CapsuleFile("a.py", 2, SHA)]
    expected = (
        f'{{"files":[{{"executable":false,"path":"a.py","sha256":"{SHA}","size":2}},'
        f'{{"executable":true,"path":"é.py","sha256":"{SHA}","size":1}}]}}'
    )
    assert manifest_bytes(files) == expected.encode()
    assert files_digest(files) == hashlib.sha256(expected.encode()).hexdigest()


@given(trees)
def test_manifest_is_sorted_by_bytes(files: list[CapsuleFile]) -> None:
    paths = [row["path"].encode() for row in json.loads(manifest_bytes(files))["files"]]
    assert paths == sorted(paths)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("", CodeRule.EMPTY_PATH),
        ("a//b", CodeRule.EMPTY_PATH),
        ("./a", CodeRule.EMPTY_PATH),
        ("a/", CodeRule.EMPTY_PATH),
        ("/etc/passwd", CodeRule.ABSOLUTE_PATH),
        ("C:/x", CodeRule.DRIVE_PATH),
        ("c:x", CodeRule.DRIVE_PATH),
        ("../x", CodeRule.PARENT_PATH),
        ("a/../../x", CodeRule.PARENT_PATH),
        ("a\\b", CodeRule.BACKSLASH),
        ("a\nb", CodeRule.CONTROL_CHARACTER),
        ("a\0b", CodeRule.CONTROL_CHARACTER),
        ("a\u2028b", CodeRule.CONTROL_CHARACTER),
        ("a\udc80b", CodeRule.NOT_UNICODE),
        ("e\u0301.py", CodeRule.NOT_NFC),
        ("é" * 121, CodeRule.PATH_TOO_LONG),
        ("/".join("a" * 33), CodeRule.PATH_TOO_DEEP),
        (".starforge/x", CodeRule.RESERVED_NAME),
        (".StarForge", CodeRule.RESERVED_NAME),
        ("starforge.py", CodeRule.RESERVED_NAME),
        ("STARFORGE.PY", CodeRule.RESERVED_NAME),
    ],
)
def test_path_rules(path: str, rule: CodeRule) -> None:
    assert rule in rules(path_problems(path))


@pytest.mark.parametrize(
    "path", ["é" * 120, "/".join("a" * 32), "a/.starforge/x", "pkg/starforge.py", "a b/c~d", "..."]
)
def test_good_paths(path: str) -> None:
    assert path_problems(path) == []


@given(st.text())
def test_any_text_is_judged_and_shown(path: str) -> None:
    for problem in path_problems(path):
        assert problem.message.isprintable()
        assert problem.file is not None
        problem.file.encode()


@pytest.mark.parametrize(
    ("paths", "rule"),
    [
        (["a", "a"], CodeRule.DUPLICATE_PATH),
        (["README", "readme"], CodeRule.CASE_COLLISION),
        (["Src/a", "src/b"], CodeRule.CASE_COLLISION),
        (["straße", "STRASSE"], CodeRule.CASE_COLLISION),
        (["\u00e9", "e\u0301"], CodeRule.UNICODE_COLLISION),
        (["a", "a/b"], CodeRule.FILE_AND_FOLDER),
    ],
)
def test_collisions(paths: list[str], rule: CodeRule) -> None:
    assert rules(collision_problems(paths)) == {rule}
    assert rules(collision_problems(paths[::-1])) == {rule}


def test_neighbours_do_not_collide() -> None:
    assert collision_problems(["a/b", "a/c", "a.b", "ab"]) == []


@given(st.lists(good_paths, unique=True, max_size=5))
def test_every_pair_that_folds_alike_is_refused(paths: list[str]) -> None:
    flipped = {path.swapcase() for path in paths if len(path.swapcase().casefold()) == len(path)} - set(paths)
    flipped = {path for path in flipped if path.casefold() in {one.casefold() for one in paths}}
    assert collision_problems([*paths, *sorted(flipped)]) or not flipped


def test_limits_are_reported_together_with_paths() -> None:
    files = [(f"f{number}", MIB // 100) for number in range(100)] + [("../x", 1)]
    assert rules(code_problems(files, INLINE_LIMITS)) == {CodeRule.TOO_MANY_FILES, CodeRule.PARENT_PATH}
    assert rules(code_problems([("a", MIB + 1)], INLINE_LIMITS)) == {CodeRule.TOO_MANY_BYTES}
    assert code_problems([("a", MIB)], INLINE_LIMITS) == []
    assert CodeLimits(files=20_000, bytes=524_288_000) == CODE_LIMITS


def test_problems_carry_the_code_of_the_schema() -> None:
    codes = {rule: code_problem(rule, "a", "it is so.").code for rule in CodeRule}
    assert codes[CodeRule.AWS_KEY] == "SECRET_FOUND"
    assert codes[CodeRule.CASE_COLLISION] == "UNSAFE_PATH"
    assert codes[CodeRule.RESERVED_NAME] == "RESERVED"
    assert codes[CodeRule.TOO_MANY_FILES] == "TOO_LARGE"
    assert codes[CodeRule.NOT_A_ZIP] == "INVALID"
