from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from starforge.adapters.local.admission import Admission, lacking, wanted
from starforge.adapters.local.rundir import RunOrder
from tests.unit.local.local_orders import EVAL, TRAIN, order, spec


class GaveUp(Exception):
    """The test does not wait."""


def give_up(why: str) -> None:
    raise GaveUp(why)


def asking(uid: str, gpus: int, since: float = 0.0) -> RunOrder:
    return order(spec(replace(TRAIN, machines=1, gpus_per_machine=gpus)), uid=uid, created_at=since)


def test_gpus_are_wanted_by_series() -> None:
    assert wanted(order(spec(TRAIN, EVAL))) == {"h200": 8, "b200": 1}


def test_what_lacks_is_told_with_numbers() -> None:
    assert lacking({"h200": 4}, {"h200": 5}, {"h200": 8}) == "Waits for 4 GPUs of series h200: 3 of 8 are free."
    assert lacking({"h200": 3}, {"h200": 5}, {"h200": 8}) is None
    assert lacking({"a100": 0}, {}, {}) is None


def test_runs_share_what_there_is(tmp_path: Path) -> None:
    admission = Admission(tmp_path)
    with (
        admission.wait(asking("a", 4), give_up),
        admission.wait(asking("b", 4), give_up),
        pytest.raises(GaveUp, match="0 of 8 are free"),
        admission.wait(asking("c", 1), give_up),
    ):
        pass
    with admission.wait(asking("c", 8), give_up):
        assert [path.stem for path in tmp_path.glob(".places/*.json")] == ["c"]


def test_who_came_first_is_first(tmp_path: Path) -> None:
    admission = Admission(tmp_path)
    with ExitStack() as stack:
        stack.enter_context(admission.wait(asking("a", 4, since=1), give_up))
        tried: list[str] = []

        def another_tries(_why: str) -> None:
            with pytest.raises(GaveUp) as caught, admission.wait(asking("c", 1, since=3), give_up):
                pass
            tried.append(str(caught.value))
            raise GaveUp

        with pytest.raises(GaveUp), admission.wait(asking("b", 8, since=2), another_tries):
            pass
        assert tried == ["Waits for 1 GPUs of series h200: 0 of 8 are free."]
    with admission.wait(asking("c", 1, since=3), give_up):
        pass


def test_the_place_of_a_dead_supervisor_is_free(tmp_path: Path) -> None:
    admission = Admission(tmp_path)
    with admission.wait(asking("a", 8), give_up):
        left = (tmp_path / ".places/a.json").read_bytes()
    (tmp_path / ".places/a.json").write_bytes(left)
    with admission.wait(asking("b", 8), give_up):
        assert not (tmp_path / ".places/a.json").exists()
