"""Equal specs are equal bytes, and nothing of a run is in them."""

import json
from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.jobspec import body_sha256, canonical, jobspec
from starforge.domain.spec import Label
from tests.unit.examples import DRAFT, a_spec

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abé", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_canonical_is_json_that_does_not_depend_on_order(value: object) -> None:
    assert json.loads(canonical(value)) == value
    if isinstance(value, dict):
        assert canonical(dict(reversed(value.items()))) == canonical(value)


def test_a_jobspec_has_all_that_is_run_and_no_ids() -> None:
    spec = a_spec()
    said = {name: value for name, value in asdict(spec).items() if name != "queue"}
    assert json.loads(jobspec(spec)) == json.loads(json.dumps(said))
    assert b"job-1" not in jobspec(spec)
    assert b" " not in jobspec(spec).replace(b"python3 train.py", b"")


def test_a_queue_is_part_of_it_where_one_is_named() -> None:
    assert json.loads(jobspec(replace(a_spec(), queue="team-a")))["queue"] == "team-a"
    assert body_sha256(replace(DRAFT, queue="team-a"), "digest") != body_sha256(DRAFT, "digest")


def test_a_body_differs_with_the_draft_and_with_the_code() -> None:
    one = body_sha256(DRAFT, "digest")
    assert one == body_sha256(replace(DRAFT), "digest")
    assert one != body_sha256(replace(DRAFT, labels=(Label("a", "b"),)), "digest")
    assert one != body_sha256(DRAFT, "other")
