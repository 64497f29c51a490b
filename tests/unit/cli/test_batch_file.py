from pathlib import Path

import pytest

from starforge.cli.batch.file import Batch, read_batch
from starforge.cli.batch.keys import batch_id, planned
from starforge.cli.batch.matrix import filled
from starforge.cli.specfile import SpecFileRefused
from starforge.domain.errors import Problem, UserMistake

BASE = """\
name: train
command: [python3, train.py]
env: [{name: MODE, value: fast}]
pools: [{name: train, series: h200, machines: 1, gpusPerMachine: 1}]
"""
SWEEP = """\
spec:
  name: train-{lr}-{seed}
  command: [python3, train.py, --lr, "{lr}"]
  env: [{name: SEED, value: "{seed}"}]
  labels: [{key: lr, value: "{lr}"}]
matrix:
  lr: [0.10, 1e-3]
  seed: [1, 2, 3]
exclude:
  - {lr: 0.10, seed: 3}
include:
  - {lr: 5, seed: 9}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "starforge.yaml").write_text(BASE)
    return tmp_path


def batch(directory: Path, text: str) -> Batch:
    path = directory / "jobs.yaml"
    path.write_text(text)
    return read_batch(path)


def problems(directory: Path, text: str) -> list[Problem]:
    with pytest.raises(SpecFileRefused) as refused:
        batch(directory, text)
    return list(refused.value.problems)


def keys(directory: Path, text: str, *, code: str = "c0de", given: str | None = "b") -> list[str]:
    found = batch(directory, text)
    return [one.key for one in planned(found, code, batch_id(found, code, given))]


def test_a_matrix_is_every_combination_but_those_excluded_and_those_included(directory: Path) -> None:
    items = batch(directory, SWEEP).items
    assert [tuple(item.parameters.values()) for item in items] == [
        ("0.10", "1"), ("0.10", "2"), ("1e-3", "1"), ("1e-3", "2"), ("1e-3", "3"), ("5", "9"),
    ]  # fmt: skip
    assert [item.index for item in items] == list(range(6))


def test_parameters_are_put_into_name_command_env_and_labels(directory: Path) -> None:
    spec = batch(directory, SWEEP).items[2].spec
    assert spec == {
        "name": "train-1e-3-1",
        "command": ["python3", "train.py", "--lr", "1e-3"],
        "env": [{"name": "MODE", "value": "fast"}, {"name": "SEED", "value": "1"}],
        "labels": [{"key": "lr", "value": "1e-3"}],
        "pools": [{"name": "train", "series": "h200", "machines": 1, "gpusPerMachine": 1}],
    }


def test_what_the_file_says_replaces_what_the_directory_says(directory: Path) -> None:
    text = "spec: {priority: 5, env: [{name: MODE, value: '{x}'}]}\nmatrix: {x: [slow]}\n"
    [item] = batch(directory, text).items
    assert item.spec["priority"] == 5
    assert item.spec["env"] == [{"name": "MODE", "value": "slow"}]


def test_a_spec_of_its_own_needs_no_other(tmp_path: Path) -> None:
    inline = "spec:\n" + "".join(f"  {line}\n" for line in BASE.splitlines())
    [item] = batch(tmp_path, f"{inline}include: [{{x: 1}}]\n").items
    assert item.spec["name"] == "train"
    assert [one.field for one in problems(tmp_path, "spec: {name: x}\nmatrix: {x: [1]}\n")] == [("spec",)] * 2


def test_the_code_lies_where_the_file_says(directory: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "sub" / "starforge.yaml").write_text(BASE)
    found = batch(directory, "code: sub\nmatrix: {x: [1]}\n")
    assert found.code == directory / "sub"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a}-{b}", "1-2"), ("{{a}}", "{a}"), ("${a} ${HOME}", "${a} ${HOME}"), ('{"k": 3}', '{"k": 3}'), ("{}", "{}"),
        ("{ a }", "{ a }"), ("{{{a}}}", "{1}"),
    ],
)  # fmt: skip
def test_templates(text: str, expected: str) -> None:
    assert filled(text, {"a": "1", "b": "2"}) == expected


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("", (), "must be keys and values"),
        ("- 1", (), "must be keys and values"),
        ("matrx: {x: [1]}", ("matrx",), "is no key here"),
        ("matrix: [1]", ("matrix",), "names with lists"),
        ("matrix: {x: 1}", ("matrix", "x"), "list of values"),
        ("matrix: {x: []}", ("matrix", "x"), "list of values"),
        ("matrix: {x: [[1]]}", ("matrix", "x"), "list of values"),
        ("matrix: {x: [1], x: [2]}", ("matrix", "x"), "given twice"),
        ("matrix: {index: [1]}", ("matrix", "index"), "can't be a parameter"),
        ("matrix: {a-b: [1]}", ("matrix", "a-b"), "can't be a parameter"),
        ("matrix: {x: [1]}\nexclude: [{y: 1}]", ("exclude", "0"), "parameters of x"),
        ("matrix: {x: [1]}\nexclude: [1]", ("exclude", "0"), "one value each"),
        ("matrix: {x: [1]}\nexclude: {x: 1}", ("exclude",), "must be a list"),
        ("matrix: {x: [1], y: [1]}\ninclude: [{x: 1}]", ("include", "0"), "every parameter"),
        ("matrix: {x: [1]}\nspec: {name: '{z}'}", ("spec",), "`{z}` is no parameter: there are x, index"),
        ("matrix: {x: [1]}\nspec: {machines: 3}", ("spec", "machines"), "is no key here"),
        ("matrix: {x: [1]}\nspec: {labels: [{key: batch, value: x}]}", ("spec", "labels"), "the batch's own"),
        ("matrix: {x: [1]}\ncode: nowhere", ("code",), "no directory"),
        ("matrix: {x: [1]}\nexclude: [{x: 1}]", ("matrix",), "this one has 0"),
        (f"matrix: {{x: [{','.join(map(str, range(101)))}], y: [{','.join(map(str, range(100)))}]}}", ("matrix",),
         "this one has 10,100"),
    ],
)  # fmt: skip
def test_a_file_that_can_not_be(directory: Path, text: str, field: tuple[str, ...], said: str) -> None:
    [problem] = problems(directory, text)
    assert problem.field == field
    assert said in problem.message


def test_a_problem_is_told_with_its_line(directory: Path) -> None:
    with pytest.raises(SpecFileRefused) as refused:
        batch(directory, "matrix:\n  x: [1]\nspec:\n  name: [x]\n")
    assert [refused.value.file.line_of(one.field) for one in refused.value.problems] == [4]


def test_keys_stay_with_what_is_run(directory: Path) -> None:
    """Wherever a combination stands in the file, so that an edited file finds what it submitted before."""
    text = "spec: {{name: 'x{{x}}'}}\nmatrix: {{x: [{}]}}\n"
    before, after = keys(directory, text.format("1, 2")), keys(directory, text.format("0, 1, 2"))
    assert after[1:] == before
    assert len(set(after)) == 3


def test_equal_jobs_have_keys_of_their_own(directory: Path) -> None:
    again = "matrix: {repeat: [1, 2, 3]}\n"
    assert len(set(keys(directory, again))) == 3
    assert keys(directory, again) == keys(directory, again)


def test_other_code_another_id_or_another_spec_is_another_key(directory: Path) -> None:
    text = "matrix: {x: [1]}\n"
    found = [keys(directory, text), keys(directory, text, code="other"), keys(directory, text, given="b2")]
    found.append(keys(directory, text + "spec: {priority: 1}\n"))
    assert len({key for [key] in found}) == 4
    assert all(len(key) <= 128 for [key] in found)


def test_the_batch_is_a_label_of_each_job(directory: Path) -> None:
    found = batch(directory, SWEEP)
    [label] = [one for one in planned(found, "c0de", "b")[0].given["spec"]["labels"] if one["key"] == "batch"]
    assert label["value"] == "b"


def test_an_id_is_the_one_given_or_the_files_or_made_of_all_that_it_says(directory: Path) -> None:
    named, nameless = batch(directory, "batch: mine\nmatrix: {x: [1]}\n"), batch(directory, "matrix: {x: [1]}\n")
    assert batch_id(named, "c", None) == "mine"
    assert batch_id(named, "c", "other") == "other"
    assert batch_id(nameless, "c", None).startswith("jobs-yaml-"[:5])
    assert batch_id(nameless, "c", None) == batch_id(nameless, "c", None) != batch_id(nameless, "d", None)
    with pytest.raises(UserMistake):
        batch_id(nameless, "c", "x" * 64)
