"""What a job's code noted, and what in a namespace is of a job."""

from pathlib import Path

import pytest

from tests.e2e.faults.collecting import is_of, starts
from tests.e2e.faults.judging import Start
from tests.e2e.faults.webhook import DENIAL, answer


def test_starts_are_read_from_the_marks(tmp_path: Path) -> None:
    (tmp_path / "start-one").write_text("100.5\n")
    (tmp_path / "printed-one").write_text("0 101.0\n1 101.5\n2 10")
    (tmp_path / "start-two").write_text("200.0\n")
    (tmp_path / "printed-two").write_text("0 201.0\n")
    (tmp_path / "end-two").write_text("202.0\n")
    assert starts(tmp_path) == (Start("one", 100.5, (101.0, 101.5)), Start("two", 200.0, (201.0,), 202.0))


def test_a_start_that_got_no_further_than_its_mark(tmp_path: Path) -> None:
    (tmp_path / "start-one").touch()
    (found,) = starts(tmp_path)
    assert found.printed_at == ()
    assert found.began_at > 0


@pytest.mark.parametrize(
    ("name", "labels", "mine"),
    [
        ("fault-job-0a1b2c3d4e", {}, True),
        ("fault-job-0a1b2c3d4e-x7k2p-head-svc", {}, True),
        ("fault-job-0a1b2c3d4efff", {}, False),
        ("other", {"starforge.io/job": "job-1"}, True),
        ("other", {"starforge.io/job": "job-2"}, False),
    ],
)
def test_objects_of_a_job(name: str, labels: dict[str, str], *, mine: bool) -> None:
    assert is_of({"metadata": {"name": name, "labels": labels}}, "job-1", "fault-job-0a1b2c3d4e") is mine


def test_the_webhook_denies_what_it_was_asked_about() -> None:
    told = answer({"request": {"uid": "u1"}})["response"]
    assert (told["uid"], told["allowed"], told["status"]["message"]) == ("u1", False, DENIAL)
