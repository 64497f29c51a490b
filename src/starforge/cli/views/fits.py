"""Whether a spec fits: a line in front, then each pool, then who would have to end."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.views.capacity import holder_text
from starforge.cli.words import clock_time

VERDICT_STYLES = {"NOW": "bold green", "LATER": "bold yellow", "NEVER": "bold red", "UNKNOWN": "dim"}


def fit_page(report: Json) -> Group:
    return Group(_verdict(report), *(part for fleet in report["fleets"] for part in _fleet(fleet)))


def _verdict(one: Json) -> Text:
    return Text.assemble((one["verdict"], VERDICT_STYLES.get(one["verdict"], "")), f"  {one['message']}")


def _fleet(fleet: Json) -> list[Text | Table]:
    parts: list[Text | Table] = [Text(), _pools(fleet)]
    if fleet["mustEnd"]:
        latest = fleet["latestStartAt"]
        when = f" It fits by {clock_time(latest)} at the latest, if all keep to their clocks." if latest else ""
        parts += [Text(), Text(f"It fits once these have ended.{when}")]
        parts += [Text(f"  {holder_text(holder)} on {', '.join(holder['nodes'])}") for holder in fleet["mustEnd"]]
    return parts


def _pools(fleet: Json) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    for name in ("FLEET", "POOL", "FITS"):
        table.add_column(name, no_wrap=True)
    table.add_column("NOW", no_wrap=True, justify="right")
    table.add_column("", overflow="fold")
    for pool in fleet["pools"]:
        verdict = Text(pool["verdict"], VERDICT_STYLES.get(pool["verdict"], ""))
        said = Text(pool["message"])
        table.add_row(Text(fleet["fleet"]), Text(pool["pool"]), verdict, Text(str(pool["placeable"])), said)
    return table
