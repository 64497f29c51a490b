"""What a supervisor does before there is any process of the run."""

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from starforge.adapters.local.children import Ears
from starforge.adapters.local.rundir import Phase, RunDir, StopWish
from starforge.adapters.local.seeing import seen
from starforge.adapters.local.supervisor import Stopped, Supervisor
from starforge.domain.observation import RunPhase
from starforge.domain.stuck_pods import STORE_AWAY
from tests.unit.local.local_orders import NOON, order
from tests.unit.local.test_local_unpacking import zipped


@dataclass
class Rests(Ears):
    """Ears for which each rest is over at once; `then` happens in them, one after the other."""

    then: list[object] = field(default_factory=list)
    told: list[tuple[Phase, str | None, str | None]] = field(default_factory=list)
    run: RunDir | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def wait(self, until: float | None, *also: int) -> bool:
        assert self.run is not None
        status, ordered = self.run.status(), self.run.order()
        assert status is not None
        assert ordered is not None
        picture = seen(ordered, status, NOON)
        assert picture.phase is RunPhase.WAITING
        self.told.append((status.phase, status.message, picture.pods[0].containers[0].waiting_reason))
        happens = self.then.pop(0)
        assert callable(happens)
        happens()
        return False


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A directory store with one Capsule, that is away: in its place there is a file."""
    (tmp_path / "kept").mkdir()
    zipped(tmp_path / "kept" / "c.zip", {"capsule/train.py": "1"})
    (tmp_path / "objects").write_text("")
    return tmp_path / "objects"


def supervisor(tmp_path: Path, ears: Rests) -> Supervisor:
    sha256 = hashlib.sha256((tmp_path / "kept" / "c.zip").read_bytes()).hexdigest()
    url = (tmp_path / "objects" / "c.zip").as_uri()
    ears.run = RunDir(tmp_path / "run")
    ears.run.path.mkdir()
    ordered = order(capsule_url=url, transport_sha256=sha256, scratch=str(tmp_path / "scratch"))
    ears.run.write_order(ordered)
    return Supervisor(ears.run, ordered, ears)


def test_an_object_store_that_is_away_is_waited_for_and_told(tmp_path: Path, store: Path) -> None:
    def comes_back() -> None:
        store.unlink()
        shutil.move(tmp_path / "kept", store)

    ears = Rests(then=[lambda: None, lambda: None, comes_back])
    _, code = supervisor(tmp_path, ears)._prepare()
    assert (code / "train.py").read_text() == "1"
    message = f"The Capsule can't be fetched from the object store: {os.strerror(20)}."
    assert ears.told == [(Phase.AWAITING_STORE, message, STORE_AWAY)] * 3


def test_a_run_that_waits_for_the_object_store_can_be_stopped(tmp_path: Path, store: Path) -> None:
    ears = Rests()
    waiting = supervisor(tmp_path, ears)
    ears.then = [lambda: RunDir(tmp_path / "run").write_stop(StopWish(0.0, remove=True))]
    with pytest.raises(Stopped):
        waiting._prepare()
