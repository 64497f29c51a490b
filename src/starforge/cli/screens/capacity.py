"""Where capacity is watched: a table that updates, lines of what changed, or JSON lines."""

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.consoles import print_json
from starforge.cli.views.capacity import as_lines, capacity_page
from starforge.cli.words import clean, clock_time


@dataclass
class Seen:
    """What was told of fleets so far, by their names: each as a whole, and its nodes by id."""

    fleets: dict[str, Json] = field(default_factory=dict)
    nodes: dict[str, dict[str, Json]] = field(default_factory=dict)

    def take(self, change: Json) -> str:
        """The name of the fleet that a step is about, once that is patched by it."""
        name = str(change["fleet"]["name"])
        nodes = {} if change["kind"] == "SNAPSHOT" else self.nodes.get(name, {})
        nodes |= {node["id"]: node for node in change["changedNodes"]}
        self.nodes[name] = {id_: node for id_, node in nodes.items() if id_ not in change["removedNodeIds"]}
        self.fleets[name] = change["fleet"]
        return name

    def nodes_of(self, fleet: str) -> list[Json]:
        """In name order."""
        return sorted(self.nodes[fleet].values(), key=lambda node: str(node["name"]))


class CapacityScreen(AbstractContextManager["CapacityScreen"], Protocol):
    """Gets every step but bookmarks, in order."""

    def change(self, change: Json) -> None:
        """A fleet as a whole after a step, with the nodes that changed."""

    def note(self, text: str) -> None:
        """A sentence about the connection."""


class LiveCapacity(CapacityScreen):
    """The newest of all, in place."""

    def __init__(self, console: Console) -> None:
        self._console, self._seen = console, Seen()
        self._live = Live(Text("…", "dim"), console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def change(self, change: Json) -> None:
        seen = self._seen
        seen.take(clean(change))
        pages = [capacity_page(fleet, seen.nodes_of(name)) for name, fleet in sorted(seen.fleets.items())]
        self._live.update(Group(*pages), refresh=True)

    def note(self, text: str) -> None:
        self._console.print(Text(text, "yellow"))


class PlainCapacity(CapacityScreen):
    """A line for whatever is new or changed, with the time of the change."""

    def __init__(self, err: Console, out: TextIO | None = None) -> None:
        self._err, self._out = err, out or sys.stdout
        self._seen, self._told = Seen(), dict[str, dict[str, str]]()

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def change(self, change: Json) -> None:
        seen, change = self._seen, clean(change)
        name = seen.take(change)
        before, now = self._told.get(name, {}), dict(as_lines(seen.fleets[name], seen.nodes_of(name)))
        lines = [line for about, line in now.items() if before.get(about) != line]
        lines += [f"{about}: no more" for about in before if about not in now]
        self._told[name] = now
        self._out.writelines(f"{clock_time(change['at'])} {line}\n" for line in lines)
        self._out.flush()

    def note(self, text: str) -> None:
        self._err.print(text, style="yellow", soft_wrap=True)


class JsonCapacity(CapacityScreen):
    """Each step as a line."""

    def __init__(self, err: Console) -> None:
        self._err = err

    def __exit__(self, *_: object) -> None: ...

    def change(self, change: Json) -> None:
        print_json(change, indent=None)

    def note(self, text: str) -> None:
        self._err.print(text, style="yellow", soft_wrap=True)
