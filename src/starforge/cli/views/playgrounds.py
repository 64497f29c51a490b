"""A table of playgrounds."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.words import STATE_STYLES, duration, moment, seconds_between


def playgrounds_table(playgrounds: Sequence[Json], now: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    table.add_column("ID", no_wrap=True)
    table.add_column("NAME", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("MODEL", no_wrap=True, overflow="ellipsis", max_width=32)
    table.add_column("STATE", no_wrap=True)
    table.add_column("GPUS", justify="right", no_wrap=True)
    table.add_column("AGE", justify="right", no_wrap=True)
    table.add_column("ENDS IN", justify="right", no_wrap=True)
    table.add_column("REQUESTS", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for playground in playgrounds:
        table.add_row(*_row(playground, now))
    return table


def _row(playground: Json, now: datetime) -> tuple[Text, ...]:
    age = duration(seconds_between(playground["createdAt"], None, now))
    reason = playground["reason"]
    return (
        Text(playground["id"]),
        Text(playground["name"]),
        Text(playground["model"]),
        Text(playground["state"], STATE_STYLES.get(playground["state"], "")),
        Text(f"{playground['gpus']} {playground['series']}"),
        Text(age),
        Text(_left(playground, now)),
        Text(str(playground["usage"]["requests"])),
        Text(reason["code"] if reason else "", "dim"),
    )


def _left(playground: Json, now: datetime) -> str:
    until = moment(playground["expiresAt"])
    return duration(max(0.0, (until - now).total_seconds())) if until else ""
