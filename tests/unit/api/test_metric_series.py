"""Curves in columns, ready for a chart library."""

from datetime import timedelta

import pytest

from starforge.api.enums import MetricBucket
from starforge.api.jobs.metrics import series
from starforge.domain.names import JobId, RunKey
from starforge.domain.progress import Curve, CurveBucket, metric_point
from tests.unit.api.feeding import AT

RUN = RunKey(JobId("job-1"), 1)


def bucket(number: int, points: int, *, step: int | None = None) -> CurveBucket:
    newest = metric_point("loss", 5.0, AT + timedelta(seconds=number), step)
    return CurveBucket(number, points, points - 1, 2.0, 1.0, 3.0, 2.5, AT, newest)


CURVE = Curve("loss", (bucket(3, 3, step=30), bucket(5, 2)))


def test_columns_have_an_entry_for_each_bucket() -> None:
    found = series(CURVE, RUN, AT - timedelta(seconds=1), 2, MetricBucket.MEAN)
    assert (found.steps, found.seconds, found.non_finites) == ([30, 5], [4.0, 6.0], [1, 1])
    assert (found.minimums, found.maximums) == ([1.0, 1.0], [3.0, 3.0])
    assert (found.reported, found.downsampled) == (5, True)
    assert found.latest
    assert found.latest.at == AT + timedelta(seconds=5)


@pytest.mark.parametrize(
    ("how", "value"),
    [(MetricBucket.MEAN, 2.0), (MetricBucket.MINIMUM, 1.0), (MetricBucket.MAXIMUM, 3.0), (MetricBucket.LAST, 2.5)],
)
def test_how_a_bucket_becomes_a_value(how: MetricBucket, value: float) -> None:
    assert series(CURVE, RUN, AT, 2, how).values == [value, value]


def test_a_curve_that_fits_is_not_downsampled() -> None:
    assert not series(CURVE, RUN, AT, 5, MetricBucket.MEAN).downsampled
