"""starforge.yaml: what is taken, and what is refused with which line and sentence."""

from pathlib import Path

import pytest

from starforge.cli.specfile import SpecFileRefused, parse_spec, read_spec, shown

EXAMPLES = Path(__file__).parents[3] / "examples"
GOOD = """\
name: digits
command: [python3, train.py]
pools:
  - name: train
    series: h200
    machines: 1
    gpusPerMachine: 8
"""


def refused(text: str) -> list[tuple[str, int | None, str]]:
    """Field, line and sentence of each problem."""
    with pytest.raises(SpecFileRefused) as caught:
        parse_spec(text)
    file = caught.value.file
    return [(shown(one.field), file.line_of(one.field), one.message) for one in caught.value.problems]


@pytest.mark.parametrize("example", ["digits", "failing"])
def test_the_examples_are_taken(example: str) -> None:
    assert read_spec(EXAMPLES / example).spec["name"] == example


def test_what_is_taken_without_a_project_that_is_not_named() -> None:
    assert parse_spec(GOOD).spec == {
        "name": "digits",
        "command": ["python3", "train.py"],
        "pools": [{"name": "train", "series": "h200", "machines": 1, "gpusPerMachine": 8}],
    }


def test_a_project_and_nulls() -> None:
    spec = parse_spec(GOOD + "project: vision\nimage:\ndescription: null\n").spec
    assert spec["project"] == "vision"
    assert not {"image", "description"} & set(spec)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("comand: [x]", "did you mean `command`?"),
        ("PRIORITY: 1", "did you mean `priority`?"),
        ("cancel_grace_seconds: 1", "did you mean `cancelGraceSeconds`?"),
        ("xyzzy: 1", "there are name, command, pools"),
    ],
)
def test_an_unknown_key_is_refused_with_its_line(key: str, hint: str) -> None:
    [(field, line, message)] = refused(GOOD + key)
    assert (field, line) == (key.partition(":")[0], 8)
    assert hint in message


def test_an_unknown_key_within_a_pool() -> None:
    [problem] = refused(GOOD + "    gpus: 8\n")
    assert problem[:2] == ("pools[0].gpus", 8)


def test_every_problem_is_told_at_once() -> None:
    text = """\
command: python3 train.py
pools:
  - name: train
    series: 200
    machines: two
env:
  - name: SEED
    value: 1
  - name: FLAG
    value: on
"""
    found = {field: (line, message) for field, line, message in refused(text)}
    assert found == {
        "name": (None, "starforge.yaml needs `name`."),
        "command": (1, "`command` must be a list, for example [python3, train.py]."),
        "pools[0].series": (4, 'YAML does not take 200 for text; put it in quotes: "200".'),
        "pools[0].machines": (5, "This must be a whole number, not two."),
        "pools[0].gpusPerMachine": (3, "`pools[0]` needs `gpusPerMachine`."),
        "env[0].value": (8, 'YAML does not take 1 for text; put it in quotes: "1".'),
        "env[1].value": (10, 'YAML does not take on for text; put it in quotes: "on".'),
    }


def test_a_key_given_twice_is_refused_as_yaml_would_take_the_last() -> None:
    [problem] = refused(GOOD + "name: other\n")
    assert problem[2] == "`name` is given twice; keep one."


@pytest.mark.parametrize("value", ["1.5", "true", "!!int x", "[1]", "'1'"])
def test_what_is_no_whole_number(value: str) -> None:
    [problem] = refused(GOOD + f"priority: {value}\n")
    assert problem[:2] == ("priority", 8)


@pytest.mark.parametrize("value", ["[a]", "{a: b}", "2024-01-01", "1.5"])
def test_what_is_no_text(value: str) -> None:
    [problem] = refused(GOOD + f"description: {value}\n")
    assert problem[:2] == ("description", 8)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "starforge.yaml is empty"),
        ("- a\n- b\n", "starforge.yaml must be keys and values"),
        ("name: [\n", "is not YAML in line 2"),
        ("name: a\n\tb: c\n", "is not YAML in line 2"),
        ("name: a\n---\nname: b\n", "is not YAML in line 2"),
        ("a: *nothing\n", "is not YAML in line 1"),
        ("name: \0\n", "is not YAML"),
        ("[" * 2_000, "is not YAML"),
    ],
)
def test_what_is_no_spec_at_all(text: str, sentence: str) -> None:
    assert sentence in refused(text)[0][2]


def test_a_directory_without_one(tmp_path: Path) -> None:
    with pytest.raises(SpecFileRefused, match=r"There is no starforge\.yaml in"):
        read_spec(tmp_path)


def test_a_line_is_found_for_what_the_gateway_finds_later() -> None:
    file = parse_spec(GOOD)
    assert file.line_of(("pools", "0", "machines")) == 6
    assert file.line_of(("pools", "0", "memory")) == 4
    assert file.line_of(("deadlines", "activeSeconds")) is None
