"""`starforge logs`."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console
from starforge.cli.documents import LOGS
from starforge.cli.exits import ExitCode
from starforge.cli.following import follow_log, new_gaps
from starforge.cli.gateway import Gateway
from starforge.cli.live import Live
from starforge.cli.screens import Screen, as_printed
from starforge.cli.screens.as_json import JsonScreen
from starforge.cli.verbs.jobs import no_job
from starforge.domain.errors import NotFound, Outside

PAGE = 1000
DRIVER = "driver"


@dataclass(frozen=True)
class Wanted:
    """Which lines: of a source of a job's attempt (the current one if None), the last `tail` or all."""

    job: str
    source: str
    attempt: int | None
    tail: int | None

    def variables(self) -> Json:
        return {"id": self.job, "attempt": self.attempt, "source": self.source}


class LogScreen(Screen):
    """Lines alone on stdout, notes on stderr."""

    def __init__(self, out: Console, err: Console) -> None:
        self._out = out
        self._err = err

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()

    def job(self, change: Json) -> None:
        """Not shown here."""

    def lines(self, lines: Sequence[Json]) -> None:
        if self._out.is_terminal:
            # Colours are kept, other escape sequences are not: they could write anywhere on the terminal.
            self._out.print(*(Text.from_ansi(line["text"]) for line in lines), sep="\n", soft_wrap=True)
        else:
            sys.stdout.write(as_printed(lines))
            sys.stdout.flush()

    def note(self, text: str) -> None:
        self._err.print(text, style="yellow", soft_wrap=True)


def run(wanted: Wanted, *, follow: bool, as_json: bool) -> ExitCode:
    screen = JsonScreen() if as_json else LogScreen(out_console(), err_console())
    with Gateway.from_settings(os.environ) as gateway, screen:
        if follow:
            _demand_source(gateway, wanted)
            given = wanted.variables() | {"tail": wanted.tail}
            asyncio.run(follow_log(Live(gateway, screen.note), given, screen))
        else:
            _print_pages(gateway, wanted, screen)
    return ExitCode.SUCCEEDED


def _print_pages(gateway: Gateway, wanted: Wanted, screen: Screen) -> None:
    given = wanted.variables() | ({"first": PAGE} if wanted.tail is None else {"last": wanted.tail})
    while True:
        job = _ask(gateway, wanted, given)
        page = job["logs"]
        if page is None:
            raise Outside("The lines can't be read right now, as their store does not answer; try again.")
        if page["source"] is None and wanted.source not in (DRIVER, *_keys(job)):
            raise _no_source(wanted, job)
        screen.lines(page["nodes"])
        if wanted.tail is not None or not page["pageInfo"]["hasNextPage"]:
            break
        given |= {"attempt": wanted.attempt or job["attempt"], "after": page["pageInfo"]["endCursor"]}
    for gap in new_gaps(page["source"], set()):
        screen.note(gap)


def _demand_source(gateway: Gateway, wanted: Wanted) -> None:
    """NotFound if a job that has ended has no such log; one that has not may get it yet."""
    job = _ask(gateway, wanted, wanted.variables() | {"last": 1})
    if job["ended"] and wanted.source not in (DRIVER, *_keys(job)):
        raise _no_source(wanted, job)


def _ask(gateway: Gateway, wanted: Wanted, variables: Json) -> Json:
    job: Json | None = gateway.ask(LOGS, **variables)["job"]
    if job is None:
        raise no_job(wanted.job)
    return job


def _keys(job: Json) -> list[str]:
    return [source["key"] for source in job["logSources"]]


def _no_source(wanted: Wanted, job: Json) -> NotFound:
    there = ", ".join(_keys(job)) or "none yet"
    return NotFound(f"The job {wanted.job} has no log {wanted.source}; there are: {there}.")
