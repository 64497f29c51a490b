"""JSON lines, each with its `type`: job, log or note."""

import json
import sys
from collections.abc import Sequence
from typing import TextIO

from starforge.cli.answers import Json
from starforge.cli.screens import Screen


class JsonScreen(Screen):
    """Changes and log lines on `out`, notes on `err`."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def job(self, change: Json) -> None:
        self._write({"type": "job", **change})

    def lines(self, lines: Sequence[Json]) -> None:
        for line in lines:
            self._write({"type": "log", **line})

    def note(self, text: str) -> None:
        self._err.write(f"{text}\n")

    def _write(self, value: Json) -> None:
        self._out.write(f"{json.dumps(value, ensure_ascii=False)}\n")
        self._out.flush()
