"""A table of jobs."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.words import STATE_STYLES, duration, seconds_between, steps


def jobs_table(jobs: Sequence[Json], now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    table.add_column("ID", no_wrap=True)
    table.add_column("NAME", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("PROJECT", no_wrap=True, overflow="ellipsis", max_width=12)
    table.add_column("STATE", no_wrap=True)
    table.add_column("GPUS", justify="right", no_wrap=True)
    table.add_column("AGE", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for job in jobs:
        table.add_row(*_row(job, now))
    return table


def _row(job: Json, now: datetime) -> tuple[Text, ...]:
    age = duration(seconds_between(job["createdAt"], None, now))
    return (
        Text(job["id"]),
        Text(job["name"]),
        Text(job["project"]),
        Text(job["state"], STATE_STYLES.get(job["state"], "")),
        Text(str(job["gpus"])),
        Text(age),
        Text(_note(job), "dim"),
    )


def _note(job: Json) -> str:
    """What matters most about it in a few words."""
    if job["reason"] and job["state"] not in {"RUNNING", "SUCCEEDED"}:
        return str(job["reason"]["code"])
    return steps(job["progress"]) if job["progress"] else ""
