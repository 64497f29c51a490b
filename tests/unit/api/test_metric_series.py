"""Curves thinned to what a chart can show."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.enums import MetricBucket
from starforge.api.jobs.metrics import _series, buckets
from starforge.api.jobs.progress import MetricSeries
from starforge.domain.names import JobId, RunKey
from starforge.domain.progress import MetricPoint, metric_point
from tests.unit.api.feeding import AT

RUN = RunKey(JobId("job-1"), 1)
VALUE = st.floats()


def points(*values: float, with_steps: bool = True) -> list[MetricPoint]:
    return [
        metric_point("loss", value, AT + timedelta(seconds=step), step if with_steps else None)
        for step, value in enumerate(values, start=1)
    ]


def series(rows: list[MetricPoint], most: int = 500, how: MetricBucket = MetricBucket.MEAN) -> MetricSeries:
    return _series("loss", RUN, rows, AT, most, how)


def test_few_points_are_given_as_they_are() -> None:
    curve = series(points(3.0, 2.0, 1.0))
    assert (curve.values, curve.steps, curve.seconds) == ([3.0, 2.0, 1.0], [1, 2, 3], [1.0, 2.0, 3.0])
    assert (curve.reported, curve.downsampled) == (3, False)
    assert curve.latest
    assert (curve.latest.value, curve.latest.step) == (1.0, 3)


def test_a_spike_is_kept_in_the_maximum() -> None:
    values = [1.0] * 1000
    values[400] = 99.0
    curve = series(points(*values), most=10)
    assert len(curve.values) == 10
    assert max(one for one in curve.maximums if one is not None) == 99.0
    assert min(one for one in curve.minimums if one is not None) == 1.0
    assert max(one for one in curve.values if one is not None) < 99.0


@pytest.mark.parametrize(
    ("how", "value"),
    [(MetricBucket.MEAN, 2.0), (MetricBucket.MINIMUM, 1.0), (MetricBucket.MAXIMUM, 3.0), (MetricBucket.LAST, 2.0)],
)
def test_how_a_bucket_becomes_a_value(how: MetricBucket, value: float) -> None:
    assert series(points(1.0, 3.0, 2.0, 7.0), most=2, how=how).values == [value, 7.0]


def test_what_is_not_finite_is_counted_and_never_a_value() -> None:
    curve = series(points(float("nan"), float("inf"), float("-inf"), 5.0), most=2)
    assert (curve.values, curve.minimums, curve.maximums) == ([None, 5.0], [None, 5.0], [None, 5.0])
    assert curve.non_finites == [3, 0]


def test_points_without_steps_are_counted() -> None:
    curve = series(points(1.0, 1.0, 1.0, 1.0, 1.0, with_steps=False), most=3)
    assert curve.steps == [2, 4, 5]


def test_the_mean_of_huge_values_is_finite() -> None:
    assert series(points(1.7e308, 1.7e308, 1.0), most=2).values[0] == pytest.approx(1.7e308)


@given(st.lists(VALUE, min_size=1, max_size=300), st.integers(2, 40), st.sampled_from(MetricBucket))
def test_nothing_is_lost_in_buckets(values: list[float], most: int, how: MetricBucket) -> None:
    rows = points(*values)
    groups = buckets(rows, most)
    assert [point for group in groups for point in group] == rows
    assert all(groups)
    assert len(groups) <= most
    if len(rows) > most:
        assert list(groups[-1]) == rows[-1:]
    curve = series(rows, most, how)
    finite = [point.value for point in rows if point.value is not None]
    assert min((one for one in curve.minimums if one is not None), default=None) == min(finite, default=None)
    assert max((one for one in curve.maximums if one is not None), default=None) == max(finite, default=None)
    assert sum(curve.non_finites) == len(rows) - len(finite)
    assert curve.seconds == sorted(curve.seconds)
    assert curve.latest
    assert curve.latest.step == len(rows)
