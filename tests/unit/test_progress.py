"""What code reports about itself."""

from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.progress import NonFinite, Progress, metric_point, report
from tests.unit.examples import AT, later

REPORTS = st.lists(
    st.tuples(st.none() | st.integers(0, 100), st.none() | st.integers(0, 100), st.integers(0, 9)), max_size=6
)


@given(st.floats())
def test_any_number_is_a_point_that_json_can_hold(value: float) -> None:
    point = metric_point("loss", value, AT, 3)
    assert (point.value is None) == (point.non_finite is not None)
    assert point.value is None or point.value == value


def test_what_is_not_finite_is_named() -> None:
    found = [metric_point("loss", value, AT, None).non_finite for value in (nan, inf, -inf)]
    assert found == [NonFinite.NAN, NonFinite.POSITIVE_INFINITY, NonFinite.NEGATIVE_INFINITY]


@given(REPORTS)
def test_what_a_report_leaves_out_keeps_its_last_value(reports: list[tuple[int | None, int | None, int]]) -> None:
    progress: Progress | None = None
    for number, (step, total, value) in enumerate(reports):
        points = (metric_point(f"m{value % 3}", value, later(number), step),)
        progress = report(progress, step, total, points, later(number))
    if progress is None:
        return
    steps = [step for step, _, _ in reports if step is not None]
    totals = [total for _, total, _ in reports if total is not None]
    assert progress.step == (steps[-1] if steps else None)
    assert progress.first_step == (steps[0] if steps else None)
    assert progress.total == (totals[-1] if totals else None)
    assert {point.name: point.value for point in progress.metrics} == {f"m{v % 3}": v for _, _, v in reports}
    assert progress.fraction is None or 0 <= progress.fraction <= 1


def test_speed_counts_from_the_first_report() -> None:
    first = report(None, 10, 100, (), AT)
    assert first.steps_per_second is None
    assert report(first, 30, None, (), later(10)).steps_per_second == 2
    assert report(first, 30, None, (), later(10)).fraction == 0.3


def test_a_fraction_stays_between_nothing_and_all() -> None:
    assert report(None, 150, 100, (), AT).fraction == 1
    assert report(None, 5, 0, (), AT).fraction is None
    assert report(None, None, 9, (), AT).fraction is None
