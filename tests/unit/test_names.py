"""Names in a cluster: valid, short, the same for the same run and different for different ones."""

import re

from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.names import RUN_NAME_MAX, JobId, RunKey, job_id, run_name, slug

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
runs = st.builds(RunKey, st.text("abc123", min_size=1, max_size=5).map(JobId), st.integers(1, 99))


@given(st.text(max_size=120), runs)
def test_any_name_gives_a_name_that_kuberay_takes(name: str, run: RunKey) -> None:
    found = run_name(name, run)
    assert DNS_1035.fullmatch(found)
    assert len(found) <= RUN_NAME_MAX == 47
    assert found == run_name(name, run)


@given(st.text(max_size=120), runs, runs)
def test_different_runs_have_different_names(name: str, one: RunKey, other: RunKey) -> None:
    assert (run_name(name, one) == run_name(name, other)) == (one == other)


@given(st.text(max_size=80), st.integers(3, 60))
def test_a_slug_is_a_label(text: str, limit: int) -> None:
    found = slug(text, limit)
    assert DNS_1035.fullmatch(found)
    assert len(found) <= limit
    assert "--" not in found


def test_a_slug_shows_what_it_is_of() -> None:
    assert slug("My Model (v2)", 40) == "my-model-v2"
    assert slug("2026 run", 40) == "run"
    assert slug("漢字", 40) == "job"
    assert slug("abc-def", 4) == "abc"


@given(st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_job_id_is_a_label_value(random: str) -> None:
    assert LABEL_VALUE.fullmatch(job_id(random))
    assert len(job_id(random)) <= 63
    assert random.startswith(job_id(random).removeprefix("job-"))


def test_a_run_is_shown_with_its_attempt() -> None:
    assert str(RunKey(JobId("job-1"), 2)) == "job-1/2"
