"""A job that is being followed, in a panel of at most about 15 lines."""

from datetime import datetime

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.views.pods import pods_table
from starforge.cli.views.reason import reason_text
from starforge.cli.words import STATE_STYLES, duration, metrics, moment, seconds_between, steps, words

STATES = ("SUBMITTED", "PACKAGING", "LAUNCHING", "PENDING", "RUNNING", "FINISHING")


def job_panel(job: Json, now: datetime) -> RenderableType:
    parts: list[RenderableType] = [_path(job, now)]
    if job["progress"]:
        parts += [_bar(job, now), Text(metrics(job["progress"]["metrics"]), "bold")]
    if job["reason"]:
        parts.append(reason_text(job["reason"]))
    if job["observation"]["freshness"] == "STALE":
        parts.append(Text("The cluster can't be heard; this is the last that is known.", "yellow"))
    if not job["ended"] and job["pods"]:
        parts.append(pods_table(job, most=6))
    style = STATE_STYLES.get(job["state"], "white")
    attempt = f"  attempt {job['attempt']}" if job["attempt"] > 1 else ""
    title = Text.assemble((job["name"], "bold"), f"  {job['id']}{attempt}")
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=_clock(job, now),
        subtitle_align="right",
        border_style=style.rpartition(" ")[2],
    )


def _path(job: Json, now: datetime) -> RenderableType:
    """The states so far and yet to come, and how long it has taken."""
    state = job["state"]
    row = Table.grid(expand=True)
    row.add_column(no_wrap=True, overflow="ellipsis")
    row.add_column(justify="right", no_wrap=True)
    taken = duration(seconds_between(job["createdAt"], job["endedAt"], now))
    row.add_row(_ended(job) if job["ended"] else _states(state), Text(taken))
    return row


def _states(state: str) -> Text:
    text, passed = Text(), True
    for one in STATES:
        if one == state:
            passed = False
            text.append(f"● {one} ", STATE_STYLES[one])
        else:
            text.append("✓ " if passed else "· ", "green" if passed else "dim")
            text.append(f"{one.lower()} ", "dim")
    return text


def _ended(job: Json) -> Text:
    code = f"  exit code {job['exitCode']}" if job["exitCode"] is not None else ""
    return Text.assemble((f"● {job['state']}", STATE_STYLES[job["state"]]), code)


def _clock(job: Json, now: datetime) -> Text | None:
    """What is left of the clock that runs."""
    for clock in job["clocks"]:
        due = moment(clock["dueAt"])
        if due and clock["state"] in {"RUNNING", "GRACE"}:
            left = duration(max(0.0, (due - now).total_seconds()))
            return Text(f"{words(clock['kind'])} clock: {left} left", "dim")
    return None


def _bar(job: Json, now: datetime) -> RenderableType:
    progress = job["progress"]
    row = Table.grid(padding=(0, 2, 0, 0))
    # Without a total the bar is empty rather than made up.
    row.add_row(
        ProgressBar(total=1, completed=progress["fraction"] or 0, width=40),
        Text(steps(progress), "bold"),
        Text(_speed(progress, now, ended=job["ended"]), "dim"),
    )
    return row


def _speed(progress: Json, now: datetime, *, ended: bool) -> str:
    if ended or not progress["stepsPerSecond"]:
        return ""
    end = moment(progress["estimatedEndAt"])
    left = f"  {duration(max(0.0, (end - now).total_seconds()))} left" if end else ""
    return f"{progress['stepsPerSecond']:.2g}/s{left}"
