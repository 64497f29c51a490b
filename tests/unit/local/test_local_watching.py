import threading
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from starforge.adapters.local.nodes import node_views
from starforge.adapters.local.processes import started
from starforge.adapters.local.rundir import Ending, Phase, RunDir, Status
from starforge.adapters.local.watching import Watch
from starforge.domain.capacity.nodes import NodesSeen
from starforge.domain.names import RunKey
from starforge.domain.observation import FleetHeard, LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.ports import Resume
from tests.unit.local.local_orders import NOON, order


class Fleet:
    """One run directory, and a watch of it that is read step by step."""

    def __init__(self, runs: Path, resume: Resume) -> None:
        self.run = RunDir(runs / "run")
        self.run.path.mkdir()
        self.run.write_order(order())
        self._stop = threading.Event()
        self._resume = resume
        nodes = partial(node_views, {"h200": 8}, logical=True)
        self._seen = Watch(self._directories, self._resumes, lambda: NOON, nodes).run(self._stop)

    def tell(self, phase: Phase, ending: Ending | None = None) -> None:
        self.run.write_status(Status(phase, started(1), "/tmp/none", ending=ending))

    def next(self) -> Seen:
        """The next thing that is not about the fleet as a whole."""
        return next(seen for seen in self._seen if not isinstance(seen, FleetHeard | NodesSeen))

    def nodes(self) -> NodesSeen:
        """The next thing that is about its nodes."""
        return next(seen for seen in self._seen if isinstance(seen, NodesSeen))

    def heard(self) -> Iterator[datetime]:
        return (seen.at for seen in self._seen if isinstance(seen, FleetHeard))

    def _directories(self) -> list[RunDir]:
        return [self.run] if self.run.path.exists() else []

    def _resumes(self, _run: RunKey, source: str) -> Resume:
        assert source == "pod/digits-1-train-0/ray-head"
        return self._resume


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path, Resume(None))


def test_a_run_is_told_as_it_is_and_again_when_it_changes(fleet: Fleet) -> None:
    phases = [seen.phase for seen in [fleet.next()] if isinstance(seen, RunSeen)]
    fleet.tell(Phase.ENDED, Ending.SUCCEEDED)
    phases += [seen.phase for seen in [fleet.next()] if isinstance(seen, RunSeen)]
    assert phases == [RunPhase.WAITING, RunPhase.SUCCEEDED]


def test_a_log_is_closed_when_the_run_has_ended_and_all_was_read(fleet: Fleet) -> None:
    fleet.tell(Phase.ENDED, Ending.FAILED)
    fleet.run.head_log.write_bytes(b"one\ntwo")
    _state, log = fleet.next(), fleet.next()
    assert isinstance(log, LogSeen)
    assert ([line.data for line in log.lines], log.cursor, log.closed) == ([b"one", b"two"], "7", True)


def test_a_log_goes_on_at_its_cursor(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, Resume("4"))
    fleet.run.head_log.write_bytes(b"one\ntwo\nthr")
    _state, log = fleet.next(), fleet.next()
    assert isinstance(log, LogSeen)
    assert ([line.data for line in log.lines], log.cursor, log.closed) == ([b"two"], "8", False)


def test_a_closed_log_is_not_read_again(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, Resume("4", closed=True))
    fleet.run.head_log.write_bytes(b"one\ntwo\n")
    fleet.tell(Phase.ENDED, Ending.SUCCEEDED)
    assert isinstance(fleet.next(), RunSeen)
    fleet.run.remove()
    gone = fleet.next()
    assert isinstance(gone, RunSeen)
    assert gone.phase is RunPhase.ABSENT


def test_a_quiet_fleet_is_heard(fleet: Fleet) -> None:
    assert list(islice(fleet.heard(), 2)) == [NOON, NOON]


def test_a_run_holds_its_gpus_from_when_it_was_let_in_until_it_has_ended(fleet: Fleet) -> None:
    assert [(node.series, node.gpus, node.claims) for node in fleet.nodes().nodes] == [("h200", 8, ())]
    fleet.run.write_status(Status(Phase.RUNNING, started(1), "/tmp/none", admitted_at=NOON.timestamp()))
    [held] = fleet.nodes().nodes
    assert {(claim.pool, claim.since, claim.releasing) for claim in held.claims} == {("train", NOON, False)}
    assert held.used.gpus == sum(claim.room.gpus for claim in held.claims) > 0
    fleet.tell(Phase.ENDED, Ending.SUCCEEDED)
    assert [node.claims for node in fleet.nodes().nodes] == [()]
