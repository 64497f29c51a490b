"""Quantities as Kubernetes writes them: what is written is what is read, and nonsense is no number."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.adapters.kube.views.requests import parse_quantity, room_of
from starforge.domain.capacity.nodes import Room

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18} | {
    f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)
}
PARTS = {"m": 10**3, "u": 10**6, "n": 10**9}
numbers = st.integers(0, 10**9)


@given(numbers, st.sampled_from(list(UNITS)))
def test_a_number_with_a_unit_is_so_many_of_it(number: int, unit: str) -> None:
    assert parse_quantity(f"{number}{unit}") == number * UNITS[unit]


@given(numbers, st.sampled_from(list(PARTS)))
def test_so_many_parts_of_one_make_the_number(number: int, unit: str) -> None:
    assert parse_quantity(f"{number}{unit}") * PARTS[unit] == number


@given(st.decimals(0, 10**6, places=3), st.sampled_from(list(UNITS)))
def test_decimals_stay_exact(number: Decimal, unit: str) -> None:
    assert parse_quantity(f"{number:f}{unit}") == number * UNITS[unit]


@given(st.integers(0, 10**6), st.integers(-9, 9), st.sampled_from("eE"))
def test_exponents(number: int, exponent: int, letter: str) -> None:
    assert parse_quantity(f"{number}{letter}{exponent}") == number * Decimal(10) ** exponent


@given(st.integers(-(2**63), 2**63))
def test_an_amount_that_json_has_as_a_number(number: int) -> None:
    assert parse_quantity(number) == number


@pytest.mark.parametrize(
    "text",
    [".", "+", "-", "--1", "1.2.3", "1..2", "1e", "1e3k", "1ee3", "1e1.5", "1mi", "1K", "1KiB", "m", "0x10", "1_000",
     "1,5", " 1", "1 ", "1\n", "inf", "NaN", "\u0661"],
)  # fmt: skip
def test_what_only_looks_like_a_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity of Kubernetes"):
        parse_quantity(text)


@given(st.text("0123456789.+-eEkKMGTPimun \n", max_size=8))
def test_any_text_is_a_finite_amount_or_refused_as_none(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except ValueError:
        return
    assert amount.is_finite()


def test_a_room_of_what_a_node_says_it_gives() -> None:
    given_away = {"cpu": "31500m", "memory": "1e3", "nvidia.com/gpu": "8", "pods": "110", "hugepages-1Gi": "0"}
    assert room_of(given_away, pods=110) == Room(8, 31_500, 1000, 110)
    assert room_of({"cpu": "100n"}, pods=0) == Room(0, 1, 0, 0)
    assert room_of({}, pods=1) == Room(pods=1)
