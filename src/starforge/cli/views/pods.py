"""Pods of a job, or the processes that stand for them."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.words import words

_STYLES = {"PENDING": "yellow", "RUNNING": "green", "SUCCEEDED": "green", "FAILED": "red", "UNKNOWN": "red"}


def pods_table(job: Json, *, most: int) -> RenderableType:
    """Those that are still there, by pool and machine; all of them if none is."""
    there = [pod for pod in job["pods"] if not pod["goneAt"]] or job["pods"]
    table = Table.grid(padding=(0, 2, 0, 0))
    for pod in sorted(there, key=_order)[:most]:
        table.add_row(*_row(pod))
    return Group(table, Text(f"… and {len(there) - most} more", "dim")) if len(there) > most else table


def _order(pod: Json) -> tuple[str, str, int, str]:
    return (str(pod["role"] != "HEAD"), pod["pool"] or "~", pod["machine"] or 0, pod["name"])


def _row(pod: Json) -> tuple[Text, ...]:
    machine = "" if pod["machine"] is None else f"[{pod['machine']}]"
    place = f"{pod['pool']}{machine}" if pod["pool"] else ""
    return (
        Text(f"● {words(pod['role'])}", _STYLES[pod["phase"]]),
        Text(place),
        Text(_condition(pod)),
        Text(pod["name"], "dim", overflow="ellipsis", no_wrap=True),
        Text(f"on {pod['nodeName']}" if pod["nodeName"] else "", "dim", overflow="ellipsis", no_wrap=True),
    )


def _condition(pod: Json) -> str:
    if pod["goneAt"]:
        return "gone"
    if pod["terminating"]:
        return "terminating"
    if pod["waitingReason"]:
        return words(pod["waitingReason"])
    restarts = f", {pod['restarts']} restarts" if pod["restarts"] else ""
    return f"{words(pod['phase'])}{', ready' if pod['ready'] and pod['phase'] == 'RUNNING' else ''}{restarts}"
