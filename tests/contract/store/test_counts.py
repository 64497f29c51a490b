"""Jobs per value, against the same counted in Python."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.errors import TookTooLong
from starforge.domain.job import Job, JobState
from starforge.domain.queries import JobCount, JobCountKey, JobFilter
from tests.contract.store.conftest import emptied
from tests.contract.store.counting import sent_by
from tests.contract.store.many import fill, many_jobs

NUMBER = 6_000
Values = Callable[[Job], Iterable[str | None]]
VALUES: dict[JobCountKey, Values] = {
    JobCountKey.STATE: lambda job: [job.state.value],
    JobCountKey.OUTCOME: lambda job: [job.attempt.outcome.value if job.attempt.outcome else None],
    JobCountKey.REASON: lambda job: [job.attempt.reason.code.value if job.attempt.reason else None],
    JobCountKey.PROJECT: lambda job: [job.spec.project],
    JobCountKey.FLEET: lambda job: [job.spec.fleet],
    JobCountKey.SERIES: lambda job: {pool.series for pool in job.spec.pools},
    JobCountKey.CREATED_BY: lambda job: [job.created_by.name],
    JobCountKey.LABEL: lambda job: [label.value for label in job.spec.labels if label.key == "team"] or [None],
}
FILTERS: dict[str, tuple[JobFilter, Callable[[Job], bool]]] = {
    "all": (JobFilter(), lambda _: True),
    "projects": (JobFilter(projects=("project-07", "project-08")), lambda job: job.spec.project[-2:] in ("07", "08")),
    "states": (JobFilter(states=(JobState.FAILED,)), lambda job: job.state is JobState.FAILED),
    "series": (JobFilter(series=("rare",)), lambda job: job.spec.pools[0].series == "rare"),
    "nothing": (JobFilter(projects=()), lambda _: False),
}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    if request.param == "postgres":
        url = emptied(request.getfixturevalue("migrated_database"))
    else:
        path = tmp_path_factory.mktemp("counts") / "store.db"
        path.write_bytes(Path(request.getfixturevalue("migrated_file")).read_bytes())
        url = f"sqlite:///{path}"
    store = SqlStore(url)
    fill(store, NUMBER)
    yield store
    store.close()


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    return list(many_jobs(NUMBER))


def counts(
    store: SqlStore, which: JobFilter, by: JobCountKey, *, most: int = 100, timeout_s: float = 60
) -> list[JobCount]:
    label = "team" if by is JobCountKey.LABEL else None
    return list(store.job_counts(which, by, label=label, at_most=most, timeout_s=timeout_s))


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("by", JobCountKey)
def test_counts(full: SqlStore, jobs: list[Job], by: JobCountKey, name: str) -> None:
    which, matches = FILTERS[name]
    expected = Counter(value for job in jobs if matches(job) for value in VALUES[by](job))
    with sent_by(full) as sent:
        found = counts(full, which, by)
    assert {one.value: one.count for one in found} == dict(expected)
    assert [one.count for one in found] == sorted(expected.values(), reverse=True)
    assert len([statement for statement, _ in sent if "SET LOCAL" not in statement]) == 1


def test_only_the_largest_groups_are_given(full: SqlStore) -> None:
    everything = counts(full, JobFilter(), JobCountKey.CREATED_BY)
    assert len(everything) == 50
    assert counts(full, JobFilter(), JobCountKey.CREATED_BY, most=7) == everything[:7]


def test_a_label_that_few_have_counts_those_without_it(full: SqlStore) -> None:
    found = full.job_counts(JobFilter(), JobCountKey.LABEL, label="absent", at_most=5, timeout_s=60)
    assert list(found) == [JobCount(None, NUMBER)]


def test_what_takes_too_long_is_given_up_and_the_connection_is_good_again(full: SqlStore) -> None:
    for _ in range(25):  # more than there are connections
        with pytest.raises(TookTooLong, match="STATE took longer than 0 seconds"):
            _count_slowly(full)
    assert sum(one.count for one in counts(full, JobFilter(), JobCountKey.STATE)) == NUMBER


def _count_slowly(store: SqlStore) -> None:
    """Postgres looks at its clock every millisecond, in which it could count so few."""
    for _ in range(200):
        counts(store, JobFilter(series=("h200", "a100", "b200", "l4")), JobCountKey.STATE, timeout_s=0)
