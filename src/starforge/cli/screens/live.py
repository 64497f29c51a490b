"""One terminal view: log lines scroll, and the job stays below them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.screens import Screen
from starforge.cli.views.panel import job_panel
from starforge.cli.words import clean, moment


class LiveScreen(Screen):
    def __init__(self, console: Console) -> None:
        self._console = console
        self._job: Json | None = None
        self._ahead = timedelta()
        self._live = Live(get_renderable=self._panel, console=console, refresh_per_second=5, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def job(self, change: Json) -> None:
        at = moment(change["at"])
        if self._job is None and at is not None:
            self._ahead = at - datetime.now(UTC)  # the gateway's clock counts, not ours
        self._job = clean(change["job"])

    def lines(self, lines: Sequence[Json]) -> None:
        # Colours are kept, other escape sequences are not: they could write anywhere on the terminal.
        self._console.print(*(Text.from_ansi(line["text"]) for line in lines), sep="\n", soft_wrap=True)

    def note(self, text: str) -> None:
        self._console.print(Text(text, "yellow"))

    def _panel(self) -> RenderableType:
        return job_panel(self._job, datetime.now(UTC) + self._ahead) if self._job else Text("…", "dim")
