"""`starforge cancel` by filter."""

import os
import sys
from collections.abc import Mapping, Sequence

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import CANCEL_JOBS
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.submitting import again
from starforge.cli.words import clean
from starforge.domain.errors import Problem, UserMistake

LIMIT = 500
SHOWN = 20
_FRESH = ("REQUESTED", "WOULD_CANCEL")


def run(which: Json, *, note: str | None, grace: int | None, dry_run: bool, yes: bool, as_json: bool) -> ExitCode:
    """Shows what matches, asks, and cancels no more than was shown."""
    with Gateway.from_settings(os.environ) as gateway:
        given = {"filter": which, "limit": LIMIT, "graceSeconds": grace, "note": note}
        seen = _ask(gateway, {**given, "dryRun": True, "maxMatched": None})
        if dry_run or not seen["matchedCount"]:
            return _tell(seen, [seen], dry_run=dry_run, as_json=as_json)
        if not yes:
            _confirm(seen)
        calls = [_ask(gateway, {**given, "dryRun": False, "maxMatched": seen["matchedCount"]})]
        while calls[-1]["remainingCount"]:
            calls.append(_ask(gateway, {**given, "dryRun": False, "maxMatched": seen["matchedCount"]}))
    return _tell(seen, calls, dry_run=False, as_json=as_json)


def filter_of(labels: Sequence[str], **lists: Sequence[str] | str | None) -> Json:
    """A JobFilter of labels as `key=value` or `key`, and of what is given of the others."""
    which: Json = {name: value for name, value in lists.items() if value}
    if labels:
        which["labels"] = [_label(one) for one in labels]
    return which


def _label(text: str) -> Json:
    key, is_equal, value = text.partition("=")
    return {"key": key, "values": value.split(",")} if is_equal else {"key": key, "operator": "EXISTS"}


def _ask(gateway: Gateway, variables: Mapping[str, object]) -> Json:
    answer: Json = again(lambda: gateway.ask(CANCEL_JOBS, **variables))["cancelJobs"]
    if answer["userErrors"]:
        raise UserMistake([Problem(one["code"], (), one["message"]) for one in answer["userErrors"]])
    return answer


def _confirm(seen: Json) -> None:
    _show(seen, err_console())
    if not sys.stdin.isatty():
        message = f"{_counted(seen)} would be canceled. Say --yes to do it without being asked."
        raise UserMistake([Problem("REQUIRED", (), message)])
    typer.confirm(f"Cancel {_counted(seen)}?", abort=True, err=True)


def _counted(seen: Json) -> str:
    return f"{seen['matchedCount']} {'job' if seen['matchedCount'] == 1 else 'jobs'}"


def _show(seen: Json, console: Console) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    for outcome in clean(seen["outcomes"][:SHOWN]):
        job = outcome["job"]
        table.add_row(job["id"], Text(job["name"]), job["project"], job["state"], f"{job['gpus']} GPUs")
    console.print(table)
    if seen["matchedCount"] > SHOWN:
        console.print(f"… and {seen['matchedCount'] - SHOWN} more", style="dim")


def _tell(seen: Json, calls: Sequence[Json], *, dry_run: bool, as_json: bool) -> ExitCode:
    if as_json:
        outcomes = list({one["job"]["id"]: one for call in calls for one in call["outcomes"]}.values())
        counts = {"matchedCount": seen["matchedCount"], "remainingCount": calls[-1]["remainingCount"]}
        print_json({"dryRun": dry_run, **counts, "outcomes": outcomes})
    elif not seen["matchedCount"]:
        out_console().print("No job matches that has not ended.")
    else:
        _sum_up(seen, sum(status in _FRESH for status in _first_statuses(calls)), dry_run=dry_run)
    return ExitCode.SUCCEEDED


def _sum_up(seen: Json, fresh: int, *, dry_run: bool) -> None:
    out = out_console()
    if not dry_run:
        return out.print(f"{fresh} of {_counted(seen)} are being canceled.", soft_wrap=True)
    _show(seen, out)
    ending = seen["matchedCount"] - fresh - seen["remainingCount"]
    about = f"{_counted(seen)} that have not ended match, with {seen['gpus']} GPUs"
    return out.print(f"{about}; {ending} of them are ending already. Nothing was done.", soft_wrap=True)


def _first_statuses(calls: Sequence[Json]) -> Sequence[str]:
    """What each job was told first: a later call finds it being canceled already."""
    first: dict[str, str] = {}
    for call in calls:
        for one in call["outcomes"]:
            first.setdefault(one["job"]["id"], one["status"])
    return list(first.values())
