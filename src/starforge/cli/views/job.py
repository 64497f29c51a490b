"""Everything about one job on one page."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.views.panel import job_panel
from starforge.cli.views.pods import pods_table
from starforge.cli.words import clock_time, duration, moment, size, words

PODS_MAX = 20
_SEVERITIES = {"INFO": "", "WARNING": "yellow", "ERROR": "red"}


def job_page(job: Json, now: datetime) -> RenderableType:
    return Group(job_panel(job | {"pods": []}, now), *_sections(job, now))


def _sections(job: Json, now: datetime) -> Iterator[RenderableType]:
    yield from _section("About", _about(job))
    yield from _section("Clocks", _clocks(job["clocks"], now))
    yield from _section("Pools", _pools(job))
    if job["pods"]:
        yield from _section("Pods", [pods_table(job, most=PODS_MAX)])
    yield from _section("Logs", _logs(job))
    yield from _section("Last events", _events(job["events"]["nodes"]))


def _section(title: str, content: Sequence[RenderableType]) -> Iterator[RenderableType]:
    if content:
        yield Text(title, "bold")
        yield from (Padding(part, (0, 0, 0, 2)) for part in content)


def _grid(rows: Sequence[tuple[str | Text, ...]]) -> list[RenderableType]:
    table = Table.grid(padding=(0, 2, 0, 0))
    for row in rows:
        first, *rest = row
        table.add_row(Text(str(first), "dim"), *(cell if isinstance(cell, Text) else Text(cell) for cell in rest))
    return [table] if rows else []


def _about(job: Json) -> list[RenderableType]:
    times = (("created", "createdAt"), ("launched", "launchedAt"), ("started", "startedAt"), ("finished", "finishedAt"))
    more = (("ended", "endedAt"), ("logs kept", "logsArchivedAt"), ("released", "releasedAt"))
    shown = [f"{name} {clock_time(job[key])}" for name, key in (*times, *more) if job[key]]
    rows = [
        ("project", f"{job['project']}, by {job['createdBy']['name']}"),
        ("command", shlex.join(job["spec"]["command"])),
        ("times", ", ".join(shown)),
    ]
    if job["fleet"]:
        rows.append(("fleet", " / ".join(filter(None, (job["fleet"], job["rayJobName"])))))
    if job["spec"]["image"]:
        rows.append(("image", job["spec"]["image"]))
    if job["capsule"]:
        capsule = job["capsule"]
        rows.append(("capsule", f"{capsule['digest'][:16]}…  {capsule['files']} files, {size(int(capsule['bytes']))}"))
    return _grid([*rows, *_ending(job)])


def _ending(job: Json) -> Iterator[tuple[str, str]]:
    if cancellation := job["cancellation"]:
        note = f": {cancellation['note']}" if cancellation["note"] else ""
        at = clock_time(cancellation["requestedAt"])
        yield "canceled", f"by {cancellation['requestedBy']['name']} at {at}{note}"
    if (teardown := job["teardown"]) and teardown["state"] != "RELEASED":
        left = ", ".join(f"{one['object']['kind']} {one['object']['name']}" for one in teardown["remaining"][:5])
        yield "teardown", f"{words(teardown['state'])}{f': {left}' if left else ''}"
        if why := teardown["reason"]:
            yield "", " ".join(filter(None, (why["message"], why["advice"])))


def _clocks(clocks: Sequence[Json], now: datetime) -> list[RenderableType]:
    rows = []
    for clock in clocks:
        limit = f"of {duration(clock['limitSeconds'])}" if clock["limitSeconds"] else ""
        due = moment(clock["dueAt"])
        left = duration(max(0.0, (due - now).total_seconds())) if due else ""
        state = f"{left} left" if left and clock["state"] in {"RUNNING", "GRACE"} else words(clock["state"])
        rows.append((words(clock["kind"]), state, limit))
    return _grid(rows)


def _pools(job: Json) -> list[RenderableType]:
    rows: list[tuple[str | Text, ...]] = []
    for pool in job["pools"]:
        counts, reason = pool["podCounts"], pool["reason"]
        machines = f"{pool['machines']} machine{'s' if pool['machines'] != 1 else ''}"
        ready = "" if job["ended"] else f"{counts['ready']} of {counts['wanted']} ready"
        held = Text(reason["message"], "yellow") if reason else Text("")
        rows.append((pool["name"], machines, f"{pool['gpusPerMachine']} × {pool['series']} each", ready, held))
    return _grid(rows)


def _logs(job: Json) -> list[RenderableType]:
    rows = [(one["key"], f"{one['lines']} lines", words(one["state"])) for one in job["logSources"]]
    if archive := job["logArchive"]:
        rows.append(("archive", f"{archive['lines']} lines, {size(int(archive['bytes']))}", words(archive["state"])))
    return _grid(rows)


def _events(events: Sequence[Json]) -> list[RenderableType]:
    rows: list[tuple[str | Text, ...]] = []
    for event in events:
        times = f" (×{event['count']})" if event["count"] > 1 else ""
        rows.append((clock_time(event["lastAt"]), Text(f"{event['message']}{times}", _SEVERITIES[event["severity"]])))
    return _grid(rows)
