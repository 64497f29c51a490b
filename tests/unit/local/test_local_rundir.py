import stat
from dataclasses import replace
from pathlib import Path

import pytest

from starforge.adapters.local.rundir import Ending, Phase, RunDir, StopWish
from starforge.adapters.local.scratch import scratch_path
from tests.unit.local.local_orders import order, status


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    (tmp_path / "run").mkdir()
    return RunDir(tmp_path / "run")


def test_what_was_written_is_read(run: RunDir) -> None:
    ended = status(Phase.ENDED, exit_code=3, ending=Ending.FAILED, message="no")
    run.write_order(order())
    run.write_status(ended)
    run.write_stop(StopWish(3, remove=True))
    assert (run.order(), run.status(), run.stop_wish()) == (order(), ended, StopWish(3, remove=True))


def test_what_was_not_written_is_none(run: RunDir) -> None:
    assert (run.order(), run.status(), run.stop_wish()) == (None, None, None)


def test_files_are_private_and_leave_no_drafts(run: RunDir) -> None:
    run.write_attempt(b"{}")
    run.write_status(status(Phase.RUNNING))
    run.write_status(replace(status(Phase.ENDING)))
    assert sorted(path.name for path in run.path.iterdir()) == ["attempt.json", "status.json"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in run.path.iterdir()} == {0o600}


def test_one_at_a_time_has_the_run(run: RunDir) -> None:
    with run.lock() as first, run.lock() as second:
        assert (first, second) == (True, False)
    with run.lock() as again:
        assert again


def test_a_removed_run_is_gone_and_can_be_removed_again(run: RunDir) -> None:
    run.write_order(order())
    run.remove()
    run.remove()
    assert run.order() is None
    assert list(run.path.parent.iterdir()) == []


def test_the_scratch_directory_leaves_room_for_sockets() -> None:
    path = scratch_path("0123456789abcdef", Path("/tmp"))
    assert path == Path("/tmp/sf-0123456789")
    with pytest.raises(ValueError, match="too long for Ray's sockets"):
        scratch_path("0123456789abcdef", Path("/tmp") / ("x" * 40))
