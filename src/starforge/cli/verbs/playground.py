"""`starforge playground list | extend | stop`, and what all verbs of playgrounds share."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import EXTEND_PLAYGROUND, PLAYGROUNDS, STOP_PLAYGROUND
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.spans import span
from starforge.cli.views.playgrounds import playgrounds_table
from starforge.cli.words import clean, clock_time, moment
from starforge.domain.errors import NotFound, Problem, UserMistake

PAGE = 100
UNITS = "smhd"


def list_playgrounds(*, every: bool, projects: Sequence[str], first: int, as_json: bool) -> ExitCode:
    which: Json = {} if every else {"active": True}
    which |= {"projects": list(projects)} if projects else {}
    with Gateway.from_settings(os.environ) as gateway:
        nodes, now = _nodes(gateway, which, first)
    if as_json:
        print_json(nodes)
    elif nodes:
        out_console().print(playgrounds_table(clean(nodes), now))
    else:
        err_console().print("No playgrounds. Start one with `starforge playground create`.")
    return ExitCode.SUCCEEDED


def extend(playground: str, time: str, *, as_json: bool) -> ExitCode:
    seconds = int(span(time, "TIME", units=UNITS).total_seconds())
    with Gateway.from_settings(os.environ) as gateway:
        answer = gateway.ask(EXTEND_PLAYGROUND, id=playground, seconds=seconds)["extendPlayground"]
    refuse(answer, playground)
    sentence = f"{playground} lives until {clock_time(answer['playground']['expiresAt'])}."
    return _tell(answer["playground"], sentence, as_json=as_json)


def stop(playground: str, *, as_json: bool) -> ExitCode:
    with Gateway.from_settings(os.environ) as gateway:
        answer = gateway.ask(STOP_PLAYGROUND, id=playground)["stopPlayground"]
    refuse(answer, playground)
    return _tell(answer["playground"], f"{playground} is {answer['playground']['state']}.", as_json=as_json)


def refuse(answer: Json, playground: str | None = None) -> None:
    """Raises what a payload has to be put right, if anything."""
    errors = answer["userErrors"]
    if playground and any(error["code"] == "NOT_FOUND" for error in errors):
        raise no_playground(playground)
    if errors:
        raise UserMistake([Problem(one["code"], tuple(one["field"] or ()), one["message"]) for one in errors])


def no_playground(playground: str) -> NotFound:
    return NotFound(f"There is no playground {playground}; `starforge playground list` lists those there are.")


def _tell(playground: Json, sentence: str, *, as_json: bool) -> ExitCode:
    if as_json:
        print_json(playground)
    else:
        out_console().print(sentence, soft_wrap=True)
    return ExitCode.SUCCEEDED


def _nodes(gateway: Gateway, which: Json, first: int) -> tuple[list[Json], datetime]:
    """The first `first` playgrounds, however many pages they come in, and the gateway's time."""
    nodes, after, now = list[Json](), None, None
    while len(nodes) < first:
        answer = gateway.ask(PLAYGROUNDS, filter=which, first=min(first - len(nodes), PAGE), after=after)
        found = answer["playgrounds"]
        nodes, after, now = nodes + found["nodes"], found["pageInfo"]["endCursor"], moment(answer["feed"]["at"])
        if not found["pageInfo"]["hasNextPage"]:
            break
    return nodes, now or datetime.now(UTC)
