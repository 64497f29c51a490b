"""Output that a container's log has rotated away is taken from Ray's own file, and else said to be missing."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from starforge.domain.logs import DRIVER, LogLine, LogSource, LogState
from starforge.domain.news import Reading
from starforge.domain.observation import LogSeen
from starforge.domain.ports import Resume
from starforge.runner.relay import Relay
from starforge.runner.stream import open_stream
from tests.unit.kube.kube_objects import pod, rayjob
from tests.unit.kube.kube_orders import RUN
from tests.unit.kube.kube_server import Answer, Query, as_json, listed, status
from tests.unit.kube.test_kube_followers import followed_on

NONCE = "n0nce"
AT = datetime(2026, 11, 29, 13, 0, tzinfo=UTC)
PREAMBLE = b"Runtime env is setting up.\n"
LINES = 400
HEAD = "pod/pod-a/main"


@dataclass
class Head:
    """The Pod of a driver: `logs` are what its log is at each request, as lines of the runtime; Ray has it all.

    The dashboard says no to the first `refusals` requests.
    """

    frames: list[bytes]
    ray: bytes
    logs: list[list[bytes]]
    refusals: int = 0
    asked: list[tuple[str, Query]] = field(default_factory=list)

    def __call__(self, _method: str, path: str, query: Query) -> Answer:
        self.asked.append((path, query))
        if path.endswith("/rayjobs"):
            found = rayjob(job="RUNNING", deployment="Running")
            found["status"]["jobId"] = "try-1"
            return listed(found)
        if path.endswith("/pods/pod-a/log"):
            is_last = len(self.logs) == 1
            return Answer(tuple(self.logs[0] if is_last else self.logs.pop(0)), then="end" if is_last else "cut")
        if self.refusals:
            self.refusals -= 1
            return status(503, message="error trying to reach service")
        return self._dashboard(path, query)

    def _dashboard(self, path: str, query: Query) -> Answer:
        service = "/services/try-0123456789-abcde-head-svc:dashboard/proxy/"
        if path.endswith(f"{service}api/jobs/try-1"):
            return as_json({"driver_node_id": "node-1"})
        assert path.endswith(f"{service}api/v0/logs/file"), path
        assert query == {"node_id": "node-1", "filename": "job-driver-try-1.log", "lines": "-1"}
        return Answer(tuple(self.ray[at : at + 1000] for at in range(0, len(self.ray), 1000)))


@pytest.fixture
def head(tmp_path: Path) -> Head:
    """A driver that has printed LINES lines, by the runner's own hand."""
    file = os.open(tmp_path / "driver.log", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    os.write(file, PREAMBLE)
    relay = Relay(open_stream(str(tmp_path / "stream")), nonce=NONCE, stdout=file)
    for number in range(LINES):
        relay.write(f"line {number} ".encode())
        relay.write(b"x" * (number * 97 % 5000) + b"\n")
    relay.report({"type": "exit", "code": 0, "signal": None, "at": 1.0})
    os.close(file)
    frames = (tmp_path / "stream").read_bytes().splitlines(keepends=True)
    stamped = [b"2026-11-29T12:%02d:%02d.5Z %s" % (at // 60 % 60, at % 60, frame) for at, frame in enumerate(frames)]
    assert len(stamped) > 850
    return Head(stamped, (tmp_path / "driver.log").read_bytes(), [])


def gathered(told: list[LogSeen]) -> tuple[LogSource, list[LogLine]]:
    """The driver's log, as the platform would keep it."""
    reading = Reading({}, trusts=NONCE.__eq__)
    for each in told:  # one by one, as each may be a batch of its own
        reading.read([each], AT)
    reading.close(DRIVER, AT)
    return reading.sources[DRIVER], reading.lines.get(DRIVER, [])


def told_of(head: Head, cursor: str | None = None) -> list[LogSeen]:
    with followed_on(head, lambda _run, _source: Resume(cursor)) as followed:
        followed.followers.pod(pod("a", node_type="head", state="terminated"))
        return followed.until()


def expected() -> list[str]:
    return [f"line {number} " + "x" * (number * 97 % 5000) for number in range(LINES)]


def test_lines_that_were_rotated_away_come_from_ray_each_once_and_in_order(head: Head) -> None:
    head.logs = [head.frames[:101], head.frames[350:600], head.frames[800:]]
    source, lines = gathered(told_of(head))
    assert [line.text for line in lines] == expected()
    assert (source.state, source.gaps) == (LogState.CLOSED, ())
    assert [path for path, _ in head.asked if path.endswith("/file")] != []


def test_a_beginning_that_was_rotated_away_comes_with_what_ray_said_before_it(head: Head) -> None:
    head.logs = [head.frames[500:]]
    source, lines = gathered(told_of(head))
    assert [line.text for line in lines] == [PREAMBLE.decode().strip(), *expected()]
    assert source.state is LogState.CLOSED


def test_an_observer_that_died_while_it_filled_a_gap_goes_on_there(head: Head) -> None:
    head.logs = [head.frames[:101], head.frames[800:]]
    told = told_of(head)
    for cut in range(1, len(told)):
        head.logs = [head.frames[800:]]
        again = told_of(head, told[cut - 1].cursor)
        source, lines = gathered([*told[:cut], *again])
        assert [line.text for line in lines] == expected()
        assert source.state is LogState.CLOSED


def test_what_ray_says_late_in_its_file_does_not_shift_what_is_taken(head: Head) -> None:
    at = len(PREAMBLE) + 30
    head.ray = head.ray[:at] + b"Running entrypoint for job 02000000: python3 .starforge/runner.pex\n" + head.ray[at:]
    head.logs = [head.frames[:101], head.frames[800:]]
    source, lines = gathered(told_of(head))
    assert [line.text for line in lines] == expected()
    assert source.state is LogState.CLOSED


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starforge.adapters.kube.watch.logs.intake.AGAIN_S", (0.0, 0.0))


def test_a_dashboard_that_is_busy_is_asked_again(head: Head) -> None:
    head.logs, head.refusals = [head.frames[:101], head.frames[800:]], 2
    source, lines = gathered(told_of(head))
    assert [line.text for line in lines] == expected()
    assert source.state is LogState.CLOSED


@pytest.mark.parametrize("why", ["away", "other", "short"])
def test_what_ray_can_not_give_is_said_to_be_missing_and_where(head: Head, why: str) -> None:
    head.logs = [head.frames[:101], head.frames[400:]]
    if why == "away":
        head.refusals = 1000
    elif why == "other":
        head.ray = b"~" * len(head.ray)
    else:
        head.ray = head.ray[:5000]
    source, lines = gathered(told_of(head))
    assert source.state is LogState.TRUNCATED
    (gap,) = source.gaps
    texts = [line.text for line in lines]
    assert texts[: gap.after_line] == expected()[: gap.after_line]
    assert 0 < gap.after_line < LINES
    assert texts[-1] == expected()[-1]
    kept = sum(len(text) + 1 for text in texts)
    total = sum(len(text) + 1 for text in expected())
    assert gap.message.startswith(f"{total - kept} bytes of output are missing") or gap.message.startswith(
        f"{total - kept + 1} bytes of output are missing"  # the gap may end a line that had no end
    )


def test_a_head_without_gaps_asks_ray_for_nothing(head: Head) -> None:
    head.logs = [head.frames]
    source, lines = gathered(told_of(head))
    assert [line.text for line in lines] == expected()
    assert {path.rpartition("/")[2] for path, _ in head.asked} == {"log"}
    assert source.run == RUN
