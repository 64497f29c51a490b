"""A pool's machines go to exactly the nodes whose series is the pool's."""

from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.kube.series import node_selector, series_of

names = st.sampled_from(["starforge/gpu-series", "nvidia.com/gpu.product", "zone"])
values = st.sampled_from(["", "h200", "b200", "H200", "UNLABELLED"])


@given(st.dictionaries(names, values), names, values.filter(bool))
def test_a_node_is_of_a_series_just_if_the_selector_for_it_takes_the_node(
    labels: dict[str, str], label: str, series: str
) -> None:
    takes = node_selector(label, series).items() <= labels.items()
    assert (series_of({"metadata": {"labels": labels}}, label) == series) == takes


@given(names)
def test_without_labels_there_is_no_series(label: str) -> None:
    assert series_of({"metadata": {}}, label) is None
    assert series_of({"metadata": {"labels": None}}, label) is None
