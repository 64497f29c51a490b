import pytest

from starforge.adapters.local.capacity import parse_gpus
from starforge.domain.errors import SettingsWrong


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("h200:8,b200:4", {"h200": 8, "b200": 4}),
        (" h200:8 , b200:4 ", {"h200": 8, "b200": 4}),
        ("rtx-6000.ada:0", {"rtx-6000.ada": 0}),
    ],
)
def test_series_and_counts_are_read(text: str, gpus: dict[str, int]) -> None:
    assert parse_gpus(text) == gpus


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "'' is not"),
        ("h200", "'h200' is not"),
        ("h200:-1", "'h200:-1' is not"),
        ("h200:8,", "'' is not"),
        ("H200:8", "'H200:8' is not"),
        ("h200:٣", "is not"),
        ("h200:8,h200:4", "h200 is there twice"),
        ("h200:99999", "more than 10000"),
    ],
)
def test_what_is_wrong_is_told_with_an_example(text: str, told: str) -> None:
    with pytest.raises(SettingsWrong) as caught:
        parse_gpus(text)
    assert told in str(caught.value)
    assert "for example h200:8,b200:4" in str(caught.value)


def test_every_wrong_entry_is_told() -> None:
    with pytest.raises(SettingsWrong) as caught:
        parse_gpus("h200,b200:x")
    assert len(caught.value.problems) == 2
