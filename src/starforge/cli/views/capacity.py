"""The GPUs of a fleet as a page: its series, then its nodes with who holds them, then what waits."""

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.words import clock_time

_COUNTS = ("total", "used", "free", "blocked")


def capacity_page(fleet: Json, nodes: Iterable[Json]) -> Group:
    """`nodes` are those of all its series, in name order."""
    parts: list[RenderableType] = [_head(fleet)]
    if fleet["series"] is not None:
        parts += [Text(), _series(fleet["series"]), Text(), _nodes(nodes)]
    if fleet["waiting"]:
        parts += [Text(), _waiting(fleet["waiting"])]
    return Group(*parts)


def _head(fleet: Json) -> Text:
    return Text.assemble((fleet["name"], "bold"), f"  {freshness(fleet['observation'])}")


def freshness(observation: Json) -> str:
    """How fresh the numbers are, as a sentence."""
    if observation["freshness"] == "NEVER":
        return "Its nodes were never seen, so nothing is known of its GPUs."
    heard = f"Heard at {clock_time(observation['observedAt'])}."
    if observation["freshness"] != "STALE":
        return heard
    why = observation["problem"]["message"] if observation["problem"] else "It can't be heard."
    return f"STALE since {clock_time(observation['staleSince'])}: {why} {heard}"


def _series(series: Iterable[Json]) -> Table:
    table = _table("SERIES", numbers=("TOTAL", "USED", "FREE", "BLOCKED", "LARGEST FREE"))
    for one in series:
        counts = [Text(str(one[name]), _style(name, one[name])) for name in (*_COUNTS, "largestFree")]
        table.add_row(Text(series_name(one), "bold"), *counts, Text("\n".join(causes_of(one))))
    return table


def series_name(series: Json) -> str:
    """Its name, and what kind of GPUs they are if these are no devices."""
    return f"{series['name']} (logical)" if series["logicalGpus"] else str(series["name"])


def causes_of(one: Json) -> list[str]:
    """Why GPUs of a series or a node are blocked, a sentence for each cause."""
    return [f"{cause['gpus']} {cause['cause']}: {cause['message']}{_since(cause)}" for cause in one["causes"]]


def _since(one: Json) -> str:
    return f" Since {clock_time(one['since'])}." if one["since"] else ""


def _nodes(nodes: Iterable[Json]) -> Table:
    table = _table("NODE", "SERIES", numbers=("TOTAL", "USED", "FREE", "BLOCKED"))
    for node in nodes:
        counts = [Text(str(node[name]), _style(name, node[name])) for name in _COUNTS]
        table.add_row(Text(node["name"]), Text(node["series"]), *counts, Text("\n".join(about_node(node))))
    return table


def about_node(node: Json) -> list[str]:
    """Why its GPUs are blocked, and who holds them."""
    return [*causes_of(node), *map(holder_text, node["holders"])]


def holder_text(holder: Json) -> str:
    """Who holds how many GPUs, and until when."""
    known = holder["name"] or ("another project" if holder["kind"] != "FOREIGN" else "a foreign Pod")
    who = f"{known} ({holder['workload']['id']})" if holder["workload"] else known
    pool = f" pool {holder['pool']}" if holder["pool"] else ""
    until = f" until {clock_time(holder['until'])}" if holder["until"] else ""
    return f"{holder['gpus']} held by {who}{pool}{until}{', going' if holder.get('releasing') else ''}"


def _waiting(waiting: Iterable[Json]) -> Table:
    table = _table("WAITS", "POOL", "SERIES", numbers=("MACHINES", "GPUS EACH"))
    for one in waiting:
        counts = [Text(str(one[name])) for name in ("machines", "gpusPerMachine")]
        names = [Text(text) for text in (waiting_name(one), one["pool"] or "", one["series"])]
        table.add_row(*names, *counts, Text(f"{one['message']}{_since(one)}"))
    return table


def waiting_name(demand: Json) -> str:
    job = demand["workload"]
    return f"{job['name']} ({job['id']})" if job else "another project"


def _table(*names: str, numbers: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    return table


def _style(name: str, count: int) -> str:
    styles = {"free": "green", "blocked": "red"}
    return styles.get(name, "") if count else "dim"


def as_lines(fleet: Json, nodes: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """The page as lines, each with what it is about, so that only those that changed can be told."""
    yield fleet["name"], f"{fleet['name']}: {_lasting(fleet['observation'])}"
    for one in fleet["series"] or ():
        counts = ", ".join(f"{one[name]} {name}" for name in _COUNTS)
        said = "; ".join(causes_of(one))
        line = f"{series_name(one)}: {counts}, largest free {one['largestFree']}"
        yield f"series {one['name']}", f"{line}; {said}" if said else line
    for node in nodes:
        counts = f"{node['used']} of {node['total']} used, {node['free']} free, {node['blocked']} blocked"
        yield (
            f"node {node['name']}",
            "; ".join([f"node {node['name']} ({node['series']}): {counts}", *about_node(node)]),
        )
    for one in fleet["waiting"]:
        about = f"waits {waiting_name(one)} {one['pool'] or ''}".strip()
        gpus = f"{one['machines']} x {one['gpusPerMachine']} {one['series']} GPUs"
        yield about, f"{about}: {gpus}: {one['message']}"


def _lasting(observation: Json) -> str:
    """How fresh the numbers are, without what changes all the time."""
    return "heard" if observation["freshness"] == "LIVE" else freshness(observation)
