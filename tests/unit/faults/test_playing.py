"""A fault is played to its end, healed however it goes, and what breaks in between is told in its row."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults import following, playing
from tests.e2e.faults.fault import Act, Fault, When, Work
from tests.e2e.faults.judging import SUCCEEDED, computed
from tests.e2e.faults.scene import Scene
from tests.unit.faults.examples import UUID, a_log, a_start

STATES = ("SUBMITTED", "PENDING", "RUNNING", "FINISHING", "SUCCEEDED")
LINES = 5


@dataclass
class FakeGateway:
    """Answers as a gateway whose jobs all succeed; the first subscription to each thing is cut in the middle."""

    marks: Path
    asked: list[dict[str, Any]] = field(default_factory=list)
    cut: set[str] = field(default_factory=set)

    async def ask(self, document: str, **variables: Any) -> dict[str, Any]:
        if "submitJob" in document:
            self.asked.append(variables["input"])
            self._leave_marks(variables["input"])
            return {"submitJob": {"status": "CREATED", "job": {"id": "job-1"}, "userErrors": []}}
        if "logs(" in document:
            nodes = [{"number": number, "text": text} for number, text in a_log(LINES).read]
            return {"job": {"logs": {"nodes": nodes if variables["from"] == 1 else []}}}
        source: dict[str, Any] = {"key": "driver", "sha256": None, "gaps": [], "download": None}
        return {
            "job": {
                "state": "SUCCEEDED", "outcome": "SUCCEEDED", "attempt": 1, "reason": None, "rayJobName": None,
                "releasedAt": "1970-01-01T00:01:49Z", "logArchive": {"state": "COMPLETE"}, "logSources": [source],
            }
        }  # fmt: skip

    def _leave_marks(self, submitted: dict[str, Any]) -> None:
        folder = self.marks / next(one["value"] for one in submitted["spec"]["env"] if one["name"] == "MARKS")
        start = a_start(LINES)
        (folder / f"start-{UUID}").write_text(f"{start.began_at}\n")
        (folder / f"printed-{UUID}").write_text("".join(f"{n} {at}\n" for n, at in enumerate(start.printed_at)))
        (folder / f"end-{UUID}").write_text(f"{start.ended_at}\n")

    async def follow(self, document: str, **variables: Any) -> AsyncGenerator[dict[str, Any], None]:
        what = "jobLogs" if "jobLogs" in document else "job"
        steps = self._lines() if what == "jobLogs" else self._states()
        for number, step in enumerate(steps[int(variables["after"] or 0) :], start=int(variables["after"] or 0) + 1):
            if what not in self.cut and number == 3:
                self.cut.add(what)
                raise OSError("the gateway was killed")
            yield {what: {**step, "cursor": str(number)}}

    def _states(self) -> list[dict[str, Any]]:
        rest = {"reason": None, "observation": {"problem": None}, "teardown": None}
        return [{"job": {"state": state, **rest}} for state in STATES]

    def _lines(self) -> list[dict[str, Any]]:
        rows = computed(a_start(LINES), LINES)
        last = len(rows)
        return [
            {"lines": [{"number": number, "text": text}], "end": number == last}
            for number, text in enumerate(rows, start=1)
        ]


@dataclass
class FakeSite:
    """`marks_inside` is empty, so that the folder of a job is the last part of its MARKS."""

    gateway: FakeGateway
    marks: Path
    settings: dict[str, str]
    marks_inside: str = "."


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(following, "AGAIN_S", 0)
    (tmp_path / "marks").mkdir()
    there = FakeSite(FakeGateway(tmp_path / "marks"), tmp_path / "marks", {"FORGE_DATA_DIR": str(tmp_path)})
    return Scene(there, None, 1)  # type: ignore[arg-type]


def a_fault(strike: Act, heal: Act) -> Fault:
    work = Work((SUCCEEDED,), seconds=LINES * playing.PAUSE_S)
    return Fault("a fault", "kind", When.RUNNING, strike, heal, (work,), lasts_s=0, limit_s=5)


async def fine(scene: Scene) -> None:
    scene.kept["struck"] = "yes"


async def counted(scene: Scene) -> None:
    scene.kept["healed"] = str(int(scene.kept.get("healed", "0")) + 1)


async def breaks(scene: Scene) -> None:
    raise RuntimeError("there is no such process")


def test_a_job_is_followed_through_cuts_to_a_good_end(scene: Scene) -> None:
    row = asyncio.run(playing.play(scene, a_fault(fine, counted)))
    assert scene.kept == {"struck": "yes", "healed": "1"}
    assert scene.jobs[0].story.cuts == 2
    assert [text for _, text in scene.jobs[0].story.lines] == computed(a_start(LINES), LINES)
    assert [step.state for step in scene.jobs[0].story.steps] == list(STATES)
    assert (row.jobs, row.right, row.lost, row.doubled, row.left) == (1, 1, 0, 0, 0)
    assert row.released_s == pytest.approx((3.0,))
    assert row.problems == ("job-1: 7 lines and no object to download",), "which is all that the fake lacks"


def test_what_breaks_in_the_strike_is_told_and_healed(scene: Scene) -> None:
    row = asyncio.run(playing.play(scene, a_fault(breaks, counted)))
    assert scene.kept == {"healed": "1"}
    assert row.problems[0] == "RuntimeError: there is no such process"
    assert not row.is_ok


def test_what_can_not_be_healed_is_told(scene: Scene) -> None:
    row = asyncio.run(playing.play(scene, a_fault(fine, breaks)))
    assert row.problems[:2] == (
        "RuntimeError: there is no such process",
        "not healed: RuntimeError: there is no such process",
    )
