"""What is shown of a job that is followed, and what its log can't do to the terminal."""

import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from starforge.cli.screens.live import LiveScreen
from starforge.cli.screens.plain import PlainScreen
from starforge.cli.views.job import job_page
from starforge.cli.views.panel import job_panel
from tests.unit.cli.api_answers import a_job, a_line, change

NOW = datetime(2026, 3, 1, 9, 32, 5, tzinfo=UTC)
PROGRESS = {"step": 3, "total": 20, "fraction": 0.15, "stepsPerSecond": 0.5,
            "estimatedEndAt": "2026-03-01T09:32:39.000Z",
            "metrics": [{"name": "loss", "value": None, "nonFinite": "NAN"}]}  # fmt: skip


def a_pod(**changes: Any) -> dict[str, Any]:
    return {
        "name": "digits-head", "runtime": "PROCESS", "role": "HEAD", "pool": "train", "machine": 0, "phase": "RUNNING",
        "ready": True, "terminating": False, "waitingReason": None, "nodeName": "here", "restarts": 0, "goneAt": None,
        **changes,
    }  # fmt: skip


def shown(job: dict[str, Any], width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(job_panel(job, NOW))
    return out.getvalue()


def test_a_running_job() -> None:
    clock = {"kind": "ACTIVE", "state": "RUNNING", "limitSeconds": 900, "dueAt": "2026-03-01T09:42:05.000Z"}
    text = shown(a_job(progress=PROGRESS, clocks=[clock], pods=[a_pod(), a_pod(goneAt="2026-03-01T09:30:00.000Z")]))
    assert "● RUNNING" in text
    assert "2 min 5 s" in text
    assert "3/20  15%" in text
    assert "34 s left" in text
    assert "loss NaN" in text
    assert "active clock: 10 min left" in text
    assert text.count("digits-head") == 1


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_keeps_to_the_terminal(width: int) -> None:
    job = a_job(name="n" * 100, progress=PROGRESS, pods=[a_pod(name="p" * 200, machine=n) for n in range(50)])
    lines = shown(job, width).splitlines()
    assert max(map(len, lines)) == width
    assert len(lines) < 20
    assert any("and 44 more" in line for line in lines)


def test_the_reason_says_whose_move_it_is() -> None:
    reason = {"code": "UNSCHEDULABLE", "message": "No node has [h900].", "advice": "Ask for h200.", "whose": "USER",
              "since": "2026-03-01T09:30:00.000Z"}  # fmt: skip
    text = shown(a_job(state="PENDING", reason=reason))
    assert "UNSCHEDULABLE No node has [h900]. Ask for h200. (your move)" in text


def test_log_lines_keep_their_colours_but_can_not_move_the_cursor() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system="standard", markup=False)
    with LiveScreen(console) as screen:
        screen.job(change(1, a_job(name="evil\x1b[2J"))["job"])
        screen.lines([a_line(1, "\x1b[31mred\x1b[0m \x1b[2Jcleared [bold]kept[/bold] \x1b]0;title\x07")])
    text = out.getvalue()
    assert re.search(r"\x1b\[31mred", text)
    assert "[bold]kept[/bold]" in text
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert "evil\\x1b[2J" in text


def test_a_line_that_is_cut_is_printed_in_one_piece() -> None:
    out = io.StringIO()
    with PlainScreen(out) as screen:
        screen.lines([a_line(1, "long ") | {"marks": ["CUT"]}])
        screen.lines([a_line(2, "line"), a_line(3, "next")])
    assert out.getvalue() == "long line\nnext\n"


def test_plain_lines_say_each_thing_once() -> None:
    out = io.StringIO()
    with PlainScreen(out) as screen:
        for job in (a_job(), a_job(), a_job(progress=PROGRESS), a_job(progress=PROGRESS), a_job(state="SUCCEEDED")):
            screen.job(change(1, job)["job"])
        screen.lines([a_line(1, "  as it [is]\x1b[0m")])
    assert out.getvalue().splitlines() == [
        "[starforge] digits job-1: RUNNING",
        "[starforge] 3/20  15%  loss NaN",
        "[starforge] digits job-1: SUCCEEDED",
        "  as it [is]\x1b[0m",
    ]


def test_a_removal_that_is_blocked_says_what_holds_it_and_what_to_do() -> None:
    reason = {"message": "RayJob digits is held by finalizer a/b.", "advice": "kubectl patch rayjob digits"}
    left = [{"object": {"kind": "RayJob", "name": "digits"}}]
    out = io.StringIO()
    teardown = {"state": "BLOCKED", "reason": reason, "remaining": left}
    Console(file=out, width=120).print(job_page(a_job(state="FINISHING", teardown=teardown), NOW))
    for words in ("blocked: RayJob digits", reason["message"], reason["advice"]):
        assert words in out.getvalue()
