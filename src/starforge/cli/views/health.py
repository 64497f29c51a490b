"""Health as a page: a line in front, then a table of all checks, then what waits."""

from rich.console import Group
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.words import clock_time

STATUS_STYLES = {"OK": "bold green", "DEGRADED": "bold yellow", "DOWN": "bold red", "UNKNOWN": "dim"}
OWN = "starforge"


def health_page(health: Json) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    for name in ("WHERE", "CHECK", "STATUS", "SINCE"):
        table.add_column(name, no_wrap=True)
    table.add_column("", overflow="fold")
    for where, checks in ((OWN, health["checks"]), *((one["fleet"], one["checks"]) for one in health["fleets"])):
        for check in checks:
            table.add_row(*_row(where, check))
    return Group(
        _head(health), Text(), table, Text(), *_fleets(health), _commands(health["commands"]), *_parked(health)
    )


def _head(health: Json) -> Text:
    told = health["message"] or "All is well."
    return Text.assemble((health["status"], STATUS_STYLES.get(health["status"], "")), f"  {told}")


def _row(where: str, check: Json) -> tuple[Text, ...]:
    status = Text(check["status"], STATUS_STYLES.get(check["status"], ""))
    return Text(where), Text(check["kind"]), status, Text(clock_time(check["since"])), Text(check["message"] or "")


def _fleets(health: Json) -> list[Text]:
    """What there is to say of each fleet besides its checks."""
    return [Text(f"{one['fleet']}: {', '.join(said)}") for one in health["fleets"] if (said := _about(one))]


def _about(fleet: Json) -> list[str]:
    named = (("Kubernetes", "kubernetesVersion"), ("KubeRay", "operatorVersion"), ("RayJob", "rayJobApiVersion"))
    said = [f"{name} {fleet[key]}" for name, key in named if fleet[key]]
    lag = fleet["observerLagSeconds"]
    said += [f"observed {lag:.1f} s late"] if lag is not None else []
    denied = [f"{one['verb']} {one['resource']}" for one in fleet["access"] or () if one["allowed"] is False]
    return said + ([f"may not {', '.join(denied)}"] if denied else [])


def _commands(commands: Json) -> Text:
    since = f", the oldest since {clock_time(commands['oldestDueAt'])}" if commands["oldestDueAt"] else ""
    return Text(f"{commands['due']} commands are due{since}; {commands['parked']} are parked.")


def _parked(health: Json) -> list[Text]:
    """Commands that wait for a person, for those who may see them."""
    return [
        Text(f"  {one['id']}  {one['kind']}  {_of(one)}{one['tries']} tries: {one['error'] or 'no error was told'}")
        for one in health["commands"]["parkedCommands"] or ()
    ]


def _of(command: Json) -> str:
    workload = command["workload"]
    return f"of {workload['id']} ({workload['name']})  " if workload else ""
