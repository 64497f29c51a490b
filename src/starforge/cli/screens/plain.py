"""Plain lines for files, pipes and CI: log lines as they are, and what happens to the job with a mark before it."""

import sys
from collections.abc import Sequence
from typing import TextIO

from starforge.cli.answers import Json
from starforge.cli.screens import Screen, as_printed
from starforge.cli.words import clean, metrics, steps

MARK = "[starforge]"


class PlainScreen(Screen):
    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._told: dict[str, str] = {}

    def __exit__(self, *_: object) -> None:
        self._out.flush()

    def job(self, change: Json) -> None:
        job = clean(change["job"])
        self._tell_new("state", _state(job))
        reason = job["reason"]
        if reason:
            self._tell_new("reason", " ".join(filter(None, (reason["code"], reason["message"], reason["advice"]))))
        counts = job["podCounts"]
        if counts["ready"] and not job["ended"]:
            self._tell_new("pods", f"Pods: {counts['ready']} of {counts['wanted']} ready")
        if progress := job["progress"]:
            self._tell_new("progress", f"{steps(progress)}  {metrics(progress['metrics'])}".strip())

    def lines(self, lines: Sequence[Json]) -> None:
        self._out.write(as_printed(lines))
        self._out.flush()

    def note(self, text: str) -> None:
        self._out.write(f"{MARK} {text}\n")
        self._out.flush()

    def _tell_new(self, what: str, text: str) -> None:
        if text and self._told.get(what) != text:
            self._told[what] = text
            self.note(text)


def _state(job: Json) -> str:
    code = f" with exit code {job['exitCode']}" if job["ended"] and job["exitCode"] is not None else ""
    return f"{job['name']} {job['id']}: {job['state']}{code}"
