"""Any draft gives a spec with everything filled in, or every problem with the path of its field."""

import dataclasses
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.errors import Problem, SpecRefused
from starforge.domain.jobspec import body_sha256, jobspec
from starforge.domain.quantities import parse_bytes
from starforge.domain.spec import DeadlinesDraft, EnvVar, FleetDefaults, JobSpec, Label, PoolDraft, SecretKey, SpecDraft
from starforge.domain.spec_rules import RESERVED_ENV, RESERVED_POOLS, freeze
from tests.unit.examples import DEFAULTS, DRAFT

TEXTS = st.one_of(
    st.sampled_from(
        ["", "train", "train\n", "head", "a" * 200, "\ud800", "x\0", "1Gi", "64Gi", "STARFORGE_X", "A", "ä"]
    ),
    st.text(max_size=6),
)
NUMBERS = st.integers(-3, 2000)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ENV = st.builds(EnvVar, TEXTS, maybe(TEXTS), maybe(st.builds(SecretKey, TEXTS, TEXTS)))
POOLS = st.builds(PoolDraft, TEXTS, TEXTS, NUMBERS, NUMBERS, maybe(NUMBERS), maybe(TEXTS), maybe(TEXTS), maybe(TEXTS))
FITTING = st.builds(
    PoolDraft, st.sampled_from(["a", "b", "c-1"]), st.just("h200"), st.integers(1, 4), st.integers(0, 8)
)
DRAFTS = st.builds(
    SpecDraft,
    name=TEXTS,
    command=st.lists(TEXTS, max_size=3).map(tuple),
    pools=st.lists(POOLS | FITTING, max_size=3).map(tuple),
    project=maybe(TEXTS),
    fleet=maybe(st.just("home") | TEXTS),
    description=maybe(TEXTS),
    image=maybe(TEXTS),
    env=st.lists(ENV, max_size=3).map(tuple),
    deadlines=st.builds(DeadlinesDraft, maybe(NUMBERS), maybe(NUMBERS), maybe(NUMBERS)),
    labels=st.lists(st.builds(Label, TEXTS, TEXTS), max_size=3).map(tuple),
    priority=maybe(st.integers(-200, 200)),
    cancel_grace_seconds=maybe(st.integers(-1, 4000)),
)
NEARLY_RIGHT = st.builds(
    SpecDraft,
    name=st.just("digits"),
    command=st.just(("x",)),
    pools=st.lists(FITTING, min_size=1, max_size=2, unique_by=lambda pool: pool.name).map(tuple),
    env=st.lists(st.builds(EnvVar, st.sampled_from(["A", "B"]), TEXTS), max_size=1).map(tuple),
    priority=maybe(st.integers(-100, 101)),
)
FLEETS = st.builds(
    replace,
    st.just(DEFAULTS),
    image=st.sampled_from([None, "a/b:1"]),
    has_images=st.booleans(),
    storage_shared=st.booleans(),
)


def refused(draft: SpecDraft, defaults: FleetDefaults = DEFAULTS) -> list[Problem]:
    with pytest.raises(SpecRefused) as caught:
        freeze(draft, defaults)
    return list(caught.value.problems)


def is_there(value: Any, path: tuple[str, ...]) -> bool:
    """Whether a field path of the schema leads to something in a draft."""
    for name in path:
        if isinstance(value, tuple):
            if not name.isdecimal() or int(name) >= len(value):
                return False
            value = value[int(name)]
        else:
            snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
            if snake not in {field.name for field in dataclasses.fields(value)}:
                return False
            value = getattr(value, snake)
    return True


@settings(max_examples=150)
@given(DRAFTS | NEARLY_RIGHT, FLEETS)
def test_any_draft_gives_a_whole_spec_or_its_problems(draft: SpecDraft, defaults: FleetDefaults) -> None:
    try:
        spec = freeze(draft, defaults)
    except SpecRefused as refusal:
        problems = refusal.problems
    else:
        is_whole(spec, defaults)
        assert json.loads(jobspec(spec))["name"] == draft.name
        assert len(body_sha256(draft, "code")) == 64
        return
    assert problems
    for problem in problems:
        assert is_there(draft, problem.field), problem
        assert problem.message.encode()
        assert problem.message.endswith((".", "example h200."))


def is_whole(spec: JobSpec, defaults: FleetDefaults) -> None:
    assert (spec.image is None) != defaults.has_images
    assert spec.project
    assert spec.fleet == defaults.fleet
    numbers = (*dataclasses.astuple(spec.deadlines), spec.priority, spec.cancel_grace_seconds)
    assert all(isinstance(number, int) for number in numbers)
    assert list(spec.labels) == sorted(spec.labels, key=lambda label: label.key)
    for pool in spec.pools:
        assert pool.cpus >= 1
        assert 0 <= parse_bytes(pool.shm_size) <= parse_bytes(pool.memory)
    assert spec.machines == 1 or defaults.storage_shared


def with_pool(**changes: Any) -> SpecDraft:
    return replace(DRAFT, pools=(replace(DRAFT.pools[0], **changes),))


def with_env(*env: EnvVar) -> SpecDraft:
    return replace(DRAFT, env=env)


RULES: list[tuple[SpecDraft, str, tuple[str, ...]]] = [
    (replace(DRAFT, name=" "), "INVALID", ("name",)),
    (replace(DRAFT, name="a\nb"), "INVALID", ("name",)),
    (replace(DRAFT, name="x" * 101), "INVALID", ("name",)),
    (replace(DRAFT, project="Vision"), "INVALID", ("project",)),
    (replace(DRAFT, project="vision\n"), "INVALID", ("project",)),
    (replace(DRAFT, fleet="elsewhere"), "UNKNOWN_FLEET", ("fleet",)),
    (replace(DRAFT, description="x" * 2001), "TOO_LARGE", ("description",)),
    (replace(DRAFT, description="\0"), "INVALID", ("description",)),
    (replace(DRAFT, image="a b"), "INVALID", ("image",)),
    (replace(DRAFT, image="a/b:1\n"), "INVALID", ("image",)),
    (replace(DRAFT, command=()), "REQUIRED", ("command",)),
    (replace(DRAFT, command=("",)), "REQUIRED", ("command",)),
    (replace(DRAFT, command=("x",) * 1001), "TOO_LARGE", ("command",)),
    (replace(DRAFT, command=("x" * 65537,)), "TOO_LARGE", ("command",)),
    (replace(DRAFT, command=("a", "b\0")), "INVALID", ("command", "1")),
    (replace(DRAFT, command=("a", "\ud800")), "INVALID", ("command", "1")),
    (with_env(EnvVar("1A", "x")), "INVALID", ("env", "0", "name")),
    (with_env(EnvVar("A\n", "x")), "INVALID", ("env", "0", "name")),
    (with_env(EnvVar("STARFORGE_X", "x")), "RESERVED", ("env", "0", "name")),
    (with_env(EnvVar("A", "x"), EnvVar("A", "y")), "DUPLICATE", ("env", "1", "name")),
    (with_env(EnvVar("A")), "EXCLUSIVE", ("env", "0")),
    (with_env(EnvVar("A", "x", SecretKey("s", "k"))), "EXCLUSIVE", ("env", "0")),
    (with_env(EnvVar("A", "\0")), "INVALID", ("env", "0", "value")),
    (with_env(EnvVar("A", "\udfff")), "INVALID", ("env", "0", "value")),
    (with_env(EnvVar("A", "x" * 131073)), "INVALID", ("env", "0", "value")),
    (with_env(EnvVar("A", secret=SecretKey("My Secret", "k"))), "INVALID", ("env", "0", "secret")),
    (with_env(EnvVar("A", secret=SecretKey("s", ""))), "INVALID", ("env", "0", "secret")),
    (with_env(EnvVar("A", secret=SecretKey("s", "a/b"))), "INVALID", ("env", "0", "secret")),
    (with_env(*[EnvVar(f"A{number}", "x") for number in range(201)]), "TOO_LARGE", ("env",)),
    (replace(DRAFT, pools=()), "REQUIRED", ("pools",)),
    (replace(DRAFT, pools=tuple(PoolDraft(f"p{n}", "h200", 1, 0) for n in range(17))), "TOO_LARGE", ("pools",)),
    (replace(DRAFT, pools=DRAFT.pools * 2), "DUPLICATE", ("pools", "1", "name")),
    (with_pool(name="Train"), "INVALID", ("pools", "0", "name")),
    (with_pool(name="train\n"), "INVALID", ("pools", "0", "name")),
    (with_pool(name="a" * 21), "INVALID", ("pools", "0", "name")),
    (with_pool(series="-h200"), "UNKNOWN_SERIES", ("pools", "0", "series")),
    (with_pool(series="h200\n"), "UNKNOWN_SERIES", ("pools", "0", "series")),
    (with_pool(series=""), "UNKNOWN_SERIES", ("pools", "0", "series")),
    (with_pool(image="UPPER"), "INVALID", ("pools", "0", "image")),
    (with_pool(machines=0), "OUT_OF_RANGE", ("pools", "0", "machines")),
    (with_pool(machines=-1), "OUT_OF_RANGE", ("pools", "0", "machines")),
    (with_pool(gpus_per_machine=65), "OUT_OF_RANGE", ("pools", "0", "gpusPerMachine")),
    (with_pool(cpus=0), "OUT_OF_RANGE", ("pools", "0", "cpus")),
    (with_pool(memory="lots"), "INVALID", ("pools", "0", "memory")),
    (with_pool(memory="511Mi"), "OUT_OF_RANGE", ("pools", "0", "memory")),
    (with_pool(memory="64Gi\n"), "INVALID", ("pools", "0", "memory")),
    (with_pool(shm_size="8Gi"), "OUT_OF_RANGE", ("pools", "0", "shmSize")),
    (with_pool(shm_size="x"), "INVALID", ("pools", "0", "shmSize")),
    (replace(DRAFT, labels=(Label("", "x"),)), "INVALID", ("labels", "0", "key")),
    (replace(DRAFT, labels=(Label("a\n", "x"),)), "INVALID", ("labels", "0", "key")),
    (replace(DRAFT, labels=(Label("a", "x" * 64),)), "INVALID", ("labels", "0", "value")),
    (replace(DRAFT, labels=(Label("a", "x"), Label("a", "y"))), "DUPLICATE", ("labels", "1", "key")),
    (replace(DRAFT, labels=tuple(Label(f"a{n}", "") for n in range(33))), "TOO_LARGE", ("labels",)),
    (replace(DRAFT, priority=101), "OUT_OF_RANGE", ("priority",)),
    (replace(DRAFT, cancel_grace_seconds=3601), "OUT_OF_RANGE", ("cancelGraceSeconds",)),
    (replace(DRAFT, deadlines=DeadlinesDraft(-1)), "OUT_OF_RANGE", ("deadlines", "queueSeconds")),
    (replace(DRAFT, deadlines=DeadlinesDraft(None, -1)), "OUT_OF_RANGE", ("deadlines", "preRunningSeconds")),
    (replace(DRAFT, deadlines=DeadlinesDraft(None, None, 10**9)), "OUT_OF_RANGE", ("deadlines", "activeSeconds")),
]


@pytest.mark.parametrize(("draft", "code", "field"), RULES, ids=[".".join(field) for *_, field in RULES])
def test_each_rule_tells_its_one_problem(draft: SpecDraft, code: str, field: tuple[str, ...]) -> None:
    assert [(problem.code, problem.field) for problem in refused(draft)] == [(code, field)]


@pytest.mark.parametrize("name", sorted(RESERVED_POOLS))
def test_names_of_rays_are_no_pools(name: str) -> None:
    assert [problem.code for problem in refused(with_pool(name=name))] == ["RESERVED"]


@pytest.mark.parametrize("name", sorted(RESERVED_ENV))
def test_variables_of_rays_are_not_the_users(name: str) -> None:
    assert [problem.code for problem in refused(with_env(EnvVar(name, "x")))] == ["RESERVED"]


def test_all_problems_are_told_at_once() -> None:
    draft = replace(with_pool(machines=0, memory="x"), name="", command=())
    assert [problem.field for problem in refused(draft)] == [
        ("name",),
        ("command",),
        ("pools", "0", "machines"),
        ("pools", "0", "memory"),
    ]


def test_more_than_a_thousand_machines_are_too_many() -> None:
    pools = tuple(PoolDraft(name, "h200", 600, 0) for name in ("a", "b"))
    assert [(problem.code, problem.field) for problem in refused(replace(DRAFT, pools=pools))] == [
        ("TOO_LARGE", ("pools",))
    ]


def test_storage_that_is_not_shared_takes_one_machine() -> None:
    alone = replace(DEFAULTS, storage_shared=False)
    assert freeze(DRAFT, alone).machines == 1
    two_pools = replace(DRAFT, pools=(*DRAFT.pools, PoolDraft("eval", "h200", 1, 0)))
    for draft in (with_pool(machines=2), two_pools):
        assert [problem.code for problem in refused(draft, alone)] == ["STORAGE_NOT_SHARED"]


def test_an_image_is_needed_where_there_are_images_and_no_default() -> None:
    bare = replace(DEFAULTS, image=None)
    assert [(problem.code, problem.field) for problem in refused(DRAFT, bare)] == [("REQUIRED", ("image",))]
    assert freeze(replace(DRAFT, image="a/b:1"), bare).image == "a/b:1"
    assert freeze(replace(DRAFT, image="a/b:1"), replace(bare, has_images=False)).image is None


def test_what_is_left_out_comes_from_the_fleet() -> None:
    spec = freeze(DRAFT, DEFAULTS)
    assert (spec.project, spec.fleet, spec.image) == ("default", "home", "example/train:1")
    assert (spec.deadlines, spec.cancel_grace_seconds, spec.priority) == (DEFAULTS.deadlines, 30, 0)
    assert (spec.primary.cpus, spec.primary.memory, spec.primary.shm_size) == (2, "4Gi", "1Gi")


def test_zero_is_a_value_and_not_left_out() -> None:
    spec = freeze(replace(DRAFT, deadlines=DeadlinesDraft(0, 0, 0), cancel_grace_seconds=0), DEFAULTS)
    assert dataclasses.astuple(spec.deadlines) == (0, 0, 0)
    assert spec.cancel_grace_seconds == 0


def test_shm_is_at_most_half_of_the_memory() -> None:
    assert freeze(with_pool(memory="1Gi"), DEFAULTS).primary.shm_size == "512Mi"
    assert freeze(with_pool(memory="64Gi"), DEFAULTS).primary.shm_size == "1Gi"
    assert freeze(with_pool(memory="8Gi", shm_size="6Gi"), DEFAULTS).primary.shm_size == "6Gi"
