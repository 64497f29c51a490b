"""The examples: their files are what the schema knows, and the digits are learnt."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from starforge.domain.spec import Deadlines, DeadlinesDraft, EnvVar, FleetDefaults, Label, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/starforge.yaml"))
DEFAULTS = FleetDefaults("local", None, 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 30, has_images=False)

LEARN = """
from digits import held_out, training_part
from network import SEED, average, initial, loss_and_accuracy, train_epoch
parts = [training_part(number, 2) for number in range(2)]
parameters = initial()
for epoch in range(1, 13):
    parameters = average([train_epoch(parameters, *part, seed=(SEED, n, epoch)) for n, part in enumerate(parts)])
print(loss_and_accuracy(parameters, *held_out())[1], sum(len(part[1]) for part in parts) + len(held_out()[1]))
"""


def draft(name: str) -> SpecDraft:
    """The spec of an example; a TypeError for a key that JobSpecInput does not have."""
    found = yaml.safe_load((EXAMPLES / name / "starforge.yaml").read_text(encoding="utf-8"))
    return SpecDraft(
        **{
            **found,
            "command": tuple(found["command"]),
            "pools": tuple(PoolDraft(**_snake(pool)) for pool in found["pools"]),
            "env": tuple(EnvVar(**variable) for variable in found.get("env", ())),
            "deadlines": DeadlinesDraft(**_snake(found.get("deadlines", {}))),
            "labels": tuple(Label(**label) for label in found.get("labels", ())),
        }
    )


def _snake(keys: dict[str, Any]) -> dict[str, Any]:
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): value for key, value in keys.items()}


def test_there_are_examples() -> None:
    assert NAMES == ["digits", "failing"]


@pytest.mark.parametrize("name", NAMES)
def test_the_spec_of_an_example_is_accepted(name: str) -> None:
    assert freeze(draft(name), DEFAULTS).name == name


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_what_it_is(name: str) -> None:
    assert (EXAMPLES / name / "README.md").read_text(encoding="utf-8").startswith(f"# {name}\n")


def test_digits_has_a_pool_for_trainers_and_one_for_the_evaluator() -> None:
    assert [(pool.name, pool.series) for pool in draft("digits").pools] == [("train", "h200"), ("eval", "b200")]


def test_the_digits_are_learnt_the_same_each_time() -> None:
    ran = [
        subprocess.run(
            [sys.executable, "-c", LEARN],
            cwd=EXAMPLES / "digits",
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
            env={"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"},
        ).stdout
        for _ in range(2)
    ]
    accuracy, images = ran[0].split()
    assert ran[0] == ran[1]
    assert float(accuracy) >= 0.93
    assert images == "1797"


def test_failing_ends_with_a_traceback_and_exit_code_3(tmp_path: Path) -> None:
    (tmp_path / "starforge.py").write_text("def progress(*_steps): ...\n")
    ended = subprocess.run(
        [sys.executable, "train.py"],
        cwd=EXAMPLES / "failing",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert ended.returncode == 3
    assert "Traceback (most recent call last)" in ended.stderr
    assert "DatasetMissing: no data at data/train.csv" in ended.stderr
