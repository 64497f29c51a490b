"""`starforge capacity`."""

import asyncio
import os

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import CAPACITY, FOLLOW_CAPACITY
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.live import Live
from starforge.cli.screens.capacity import CapacityScreen, JsonCapacity, LiveCapacity, PlainCapacity
from starforge.cli.views.capacity import capacity_page
from starforge.cli.words import clean
from starforge.domain.errors import NotFound


def run(fleet: str | None, *, watch: bool, as_json: bool) -> ExitCode:
    with Gateway.from_settings(os.environ) as gateway:
        fleets: list[Json] = gateway.ask(CAPACITY, fleet=fleet)["capacity"]
        if fleet and not fleets:
            raise NotFound(f"There is no fleet {fleet}; `starforge capacity` shows those there are.")
        if watch:
            return _watch(gateway, fleet, as_json=as_json)
    if as_json:
        print_json(fleets)
    else:
        for one in clean(fleets):
            out_console().print(capacity_page(one, _nodes(one)))
    return ExitCode.SUCCEEDED


def _nodes(fleet: Json) -> list[Json]:
    nodes = [node for series in fleet["series"] or () for node in series["nodes"]]
    return sorted(nodes, key=lambda node: str(node["name"]))


def _watch(gateway: Gateway, fleet: str | None, *, as_json: bool) -> ExitCode:
    """Until interrupted, which is how it is meant to end."""
    try:
        with _screen(as_json=as_json) as screen:
            asyncio.run(_follow(gateway, fleet, screen))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return ExitCode.SUCCEEDED


async def _follow(gateway: Gateway, fleet: str | None, screen: CapacityScreen) -> None:
    live = Live(gateway, screen.note)
    async for change in live.follow(FOLLOW_CAPACITY, {"fleet": fleet}, is_last=lambda _: False):
        if change["fleet"]:
            screen.change(change)


def _screen(*, as_json: bool) -> CapacityScreen:
    if as_json:
        return JsonCapacity(err_console())
    console = out_console()
    return LiveCapacity(console) if console.is_terminal else PlainCapacity(err_console())
