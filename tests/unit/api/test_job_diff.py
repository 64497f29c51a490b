"""What differs between the specs of two jobs."""

import json
from dataclasses import asdict, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from starforge.api.inputs import JobSpecInput
from starforge.api.jobs.diff import spec_differences
from starforge.domain.spec import Deadlines, EnvVar, JobSpec, Label, PoolSpec, SecretKey

SPEC = JobSpec(
    name="train", project="vision", fleet="home", description=None, image=None, command=("python3", "train.py"),
    env=(EnvVar("A", "1"), EnvVar("B", None, SecretKey("s", "k"))),
    pools=(PoolSpec("main", "h200", 1, 8, 1, "2Gi", "1Gi"),),
    deadlines=Deadlines(600, 1800, 0), labels=(Label("team", "a"),), priority=0, cancel_grace_seconds=30,
)  # fmt: skip


def differences(left: JobSpec, right: JobSpec) -> dict[tuple[str, ...], tuple[Any, Any]]:
    return {
        tuple(one.path): (one.left and json.loads(one.left), one.right and json.loads(one.right))
        for one in spec_differences(left, right)
    }


def test_equal_specs_do_not_differ() -> None:
    assert spec_differences(SPEC, replace(SPEC)) == []


def test_a_value_is_named_by_its_path_in_the_input() -> None:
    pool = replace(SPEC.pools[0], gpus_per_machine=4)
    assert differences(SPEC, replace(SPEC, pools=(pool,), image="train:2", deadlines=Deadlines(0, 1800, 0))) == {
        ("deadlines", "queueSeconds"): (600, 0),
        ("image",): (None, "train:2"),
        ("pools", "0", "gpusPerMachine"): (8, 4),
    }


def test_what_is_there_on_one_side_only_is_null_on_the_other() -> None:
    assert differences(SPEC, replace(SPEC, labels=(), env=SPEC.env[:1])) == {
        ("env", "1", "name"): ("B", None),
        ("env", "1", "secret", "key"): ("k", None),
        ("env", "1", "secret", "name"): ("s", None),
        ("labels", "0", "key"): ("team", None),
        ("labels", "0", "value"): ("a", None),
    }


def test_paths_are_in_order_and_indexes_count() -> None:
    long = replace(SPEC, command=tuple(map(str, range(12))))
    paths = [one.path for one in spec_differences(long, replace(SPEC, command=(), name="other"))]
    assert paths == [*(["command", str(number)] for number in range(12)), ["name"]]


def test_first_steps_are_fields_of_the_input() -> None:
    fields = {name.replace("_", "") for name in JobSpecInput.__annotations__}
    assert {name.replace("_", "") for name in asdict(SPEC)} == fields


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_the_left_and_what_differs_give_the_right(left: list[str], right: list[str]) -> None:
    found = differences(replace(SPEC, command=tuple(left)), replace(SPEC, command=tuple(right)))
    made = dict(enumerate(left))
    for (_, index), (_, value) in found.items():
        made.pop(int(index), None)
        if value is not None:
            made[int(index)] = value
    assert [made[number] for number in sorted(made)] == right
