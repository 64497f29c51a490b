"""Quantities as Kubernetes reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.quantities import parse_bytes, show_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("1k", 1000), ("64Gi", 64 * 2**30), ("1.5Gi", 3 * 2**29), ("2T", 2 * 10**12), ("512Mi", 2**29)],
)
def test_what_a_quantity_means(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    "text", ["", "Gi", "-1Gi", "1gi", "1 Gi", "1Gi\n", "1e3", "0x10", "٣Gi", "1.Gi", ".5Gi", "1KB", "9" * 20 + "Gi"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity such as 64Gi"):
        parse_bytes(text)


@given(st.integers(0, 2**49))
def test_shown_and_read_it_is_the_same(count: int) -> None:
    assert parse_bytes(show_bytes(count)) == count


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    try:
        count = parse_bytes(text)
    except ValueError:
        return
    assert count >= 0
    assert text.isascii()
    assert text == text.strip()


def test_it_is_shown_in_the_largest_unit_that_loses_nothing() -> None:
    assert [show_bytes(count) for count in (0, 1023, 2048, 2**30, 3 * 2**29)] == ["0", "1023", "2Ki", "1Gi", "1536Mi"]
