"""Shows nothing of the job, for who only waits for its end."""

from collections.abc import Sequence

from rich.console import Console

from starforge.cli.answers import Json
from starforge.cli.screens import Screen


class SilentScreen(Screen):
    """Only notes, on `err`."""

    def __init__(self, err: Console) -> None:
        self._err = err

    def __exit__(self, *_: object) -> None: ...

    def job(self, change: Json) -> None: ...

    def lines(self, lines: Sequence[Json]) -> None: ...

    def note(self, text: str) -> None:
        self._err.print(text, style="yellow", soft_wrap=True)
