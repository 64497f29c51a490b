"""Curves that the database thins, against the same done in Python."""

import math
from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes
from starforge.domain.names import RunKey
from starforge.domain.progress import Curve, CurveBucket, MetricPoint, metric_point
from starforge.domain.queries import METRICS_MAX, CurveRange
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, a_job, after, save, saved

FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324


def points(*values: float, name: str = "loss", with_steps: bool = True) -> list[MetricPoint]:
    return [
        metric_point(name, value, after(number), number * 10 if with_steps else None)
        for number, value in enumerate(values, start=1)
    ]


def report(store: SqlStore, run: RunKey, rows: Sequence[MetricPoint]) -> None:
    store.commit(Changes(metrics=[(run, row) for row in rows]), at=AT)


def curve(store: SqlStore, rows: Sequence[MetricPoint], which: CurveRange) -> Curve | None:
    run = saved(store).run
    report(store, run, rows)
    return next(iter(store.metric_curves([run], which).get(run, ())), None)


def expected(rows: Sequence[MetricPoint], most: int) -> list[list[MetricPoint]]:
    """Neighbours together in at most `most` buckets, the newest point in one of its own."""
    if len(rows) <= most:
        return [[row] for row in rows]
    numbered = groupby(enumerate(rows), lambda item: item[0] * (most - 1) // (len(rows) - 1))
    return [[row for _, row in group] for _, group in numbered]


def check(bucket: CurveBucket, rows: Sequence[MetricPoint]) -> None:
    finite = [row.value for row in rows if row.value is not None]
    assert (bucket.points, bucket.finite) == (len(rows), len(finite))
    assert (bucket.newest, bucket.first_at) == (rows[-1], min(row.at for row in rows))
    assert bucket.last == (finite[-1] if finite else None)
    assert (bucket.minimum, bucket.maximum) == (min(finite, default=None), max(finite, default=None))
    if not finite:
        assert bucket.mean is None
        return
    mean = math.fsum(value / len(finite) for value in finite)
    room = 1e-9 * max(map(abs, finite)) + 1e-300
    assert bucket.mean is not None
    assert abs(bucket.mean - mean) <= room
    assert min(finite) <= bucket.mean <= max(finite)


@FEW
@given(data=st.data())
def test_buckets_are_what_python_makes_of_the_same_points(store: SqlStore, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats() | st.sampled_from([LARGEST, -LARGEST, SMALLEST]), max_size=60))
    most = data.draw(st.integers(2, 20))
    number = data.draw(st.integers(1, 10**9))
    if store.job(a_job(number).id) is None:
        save(store, a_job(number))
        run, rows = a_job(number).run, points(*values)
        report(store, run, rows)
        found = store.metric_curves([run], CurveRange(None, most=most)).get(run, ())
        groups = expected(rows, most)
        assert len(groups) <= most
        assert [len(one.buckets) for one in found] == ([len(groups)] if rows else [])
        for one in found:
            assert [bucket.number for bucket in one.buckets] == [
                sum(map(len, groups[: i + 1])) for i in range(len(groups))
            ]
            for bucket, group in zip(one.buckets, groups, strict=True):
                check(bucket, group)


def test_the_newest_point_has_a_bucket_of_its_own(store: SqlStore) -> None:
    found = curve(store, points(*map(float, range(1000))), CurveRange(("loss",), most=7))
    assert found
    assert len(found.buckets) == 7
    assert (found.buckets[-1].points, found.buckets[-1].minimum) == (1, 999.0)
    assert {bucket.points for bucket in found.buckets[:-1]} == {166, 167}


def test_only_points_between_two_steps(store: SqlStore) -> None:
    found = curve(store, points(1.0, 2.0, 3.0, 4.0), CurveRange(("loss",), first_step=20, last_step=30))
    assert found
    assert [bucket.newest.value for bucket in found.buckets] == [2.0, 3.0]
    assert [bucket.number for bucket in found.buckets] == [1, 2]


def test_curves_of_many_runs_are_asked_for_together(store: SqlStore) -> None:
    jobs = [a_job(number) for number in range(20)]
    save(store, *jobs)
    for job in jobs:
        report(store, job.run, points(1.0, 2.0) + points(3.0, name=f"of {job.id}"))
    runs = [job.run for job in jobs]
    with sent_by(store) as sent:
        found = store.metric_curves(runs, CurveRange(None))
    assert len(sent) == 2
    assert {run: [one.name for one in curves] for run, curves in found.items()} == {
        run: ["loss", f"of {run.job}"] for run in runs
    }


def test_the_first_metrics_by_name_are_given_and_named_ones_however_many_there_are(store: SqlStore) -> None:
    run = saved(store).run
    names = [f"m{number:02}" for number in range(METRICS_MAX + 5)]
    report(store, run, [point for name in reversed(names) for point in points(1.0, name=name)])
    assert [one.name for one in store.metric_curves([run], CurveRange(None))[run]] == names[:METRICS_MAX]
    assert [one.name for one in store.metric_curves([run], CurveRange((names[-1],)))[run]] == [names[-1]]
    assert store.metric_curves([run], CurveRange(())) == {}
    assert store.metric_names([run, RunKey(run.job, 2)]) == {run: names[::-1]}


@pytest.mark.parametrize("number", [60_000])
def test_of_many_points_only_buckets_leave_the_database(store: SqlStore, number: int) -> None:
    found = curve(store, points(*map(float, range(number))), CurveRange(("loss",), most=500))
    assert found
    assert (len(found.buckets), found.buckets[-1].number) == (500, number)
    assert sum(bucket.points for bucket in found.buckets) == number
